"""`subscriptions/listen` of the sessionless era: a stream that tells what changes.

Of the things that the core protocol lists a runtime changes none. Named tasks are told of at once and at each change,
and the stream ends when all of them are over.
"""

from typing import Any, Final, Literal, cast

from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY, InMemorySubscriptionBus, ListenHandler, SubscriptionBus
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RequestId,
    ServerNotification,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from mcp_types import Notification as McpNotification

from luftpause.core.model.ids import PrincipalId
from luftpause.services.runtime.mcp_door.calls import Context, who_asks
from luftpause.services.runtime.mcp_door.task_desk import TaskDesk, TaskView, UnknownTaskError, on_wire
from luftpause.services.runtime.mcp_door.tasks import require_tasks

STREAMS_MAX: Final = 1024
TASKS_MAX: Final = 1000


class _TaskTold(McpNotification[dict[str, Any], Literal["notifications/tasks"]]):
    method: Literal["notifications/tasks"] = "notifications/tasks"
    params: dict[str, Any]


class Subscriptions:
    """Serves the streams of one door. `bus` brings what the core protocol lists, should anything of it change."""

    def __init__(self, desk: TaskDesk, bus: SubscriptionBus | None = None) -> None:
        self._desk = desk
        self._listed = ListenHandler(bus or InMemorySubscriptionBus(), max_subscriptions=STREAMS_MAX)
        self._streams = 0

    async def listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Serve one stream for as long as its client listens.

        Raises:
            MCPError: there are too many streams, or the client may not ask for tasks.
        """
        wanted = (params.notifications.model_extra or {}).get("taskIds")
        if not isinstance(wanted, list) or not wanted:
            return await self._listed(context, params)
        require_tasks(context)
        if context.request_id is None:
            raise MCPError(code=INVALID_REQUEST, message="a subscription needs a request id")
        if self._streams >= STREAMS_MAX:
            raise MCPError(code=INTERNAL_ERROR, message="there are too many subscriptions")
        self._streams += 1
        try:
            return await self._tell(context, context.request_id, wanted[:TASKS_MAX])
        finally:
            self._streams -= 1

    async def _tell(self, context: Context, stream: RequestId, wanted: list[object]) -> SubscriptionsListenResult:
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: stream}
        principal = who_asks(context).name
        seen = self._known(principal, wanted)
        honoured = SubscriptionFilter.model_validate({"taskIds": list(seen)})
        acknowledged = SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
        await context.session.send_notification(
            SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=stream
        )
        for view in seen.values():
            await _send(context, stream, view, meta)
        while open_tasks := [view for view in seen.values() if not view.status.is_over]:
            await self._desk.changed(principal, open_tasks)
            for before in open_tasks:
                now = self._desk.look(principal, before.task)
                if now != before:
                    seen[now.task] = now
                    await _send(context, stream, now, meta)
        return SubscriptionsListenResult(_meta=meta)

    def _known(self, principal: PrincipalId, wanted: list[object]) -> dict[str, TaskView]:
        """Return those of the wanted tasks that the principal has; of others nothing is told."""
        found: dict[str, TaskView] = {}
        for task in wanted:
            if isinstance(task, str):
                try:
                    found[task] = self._desk.look(principal, task)
                except UnknownTaskError:
                    continue
        return found


async def _send(context: Context, stream: RequestId, view: TaskView, meta: dict[str, Any]) -> None:
    told = _TaskTold(params={**on_wire(view), "_meta": meta})
    # The SDK's union of notifications leaves out those of extensions.
    await context.session.send_notification(cast(ServerNotification, told), related_request_id=stream)
