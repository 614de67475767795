"""The Tasks extension of the sessionless era: what was begun by one call is looked at, answered and ended by others."""

from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    RequestParams,
)

from luftpause.core.model.ids import PrincipalId
from luftpause.services.runtime.mcp_door.calls import Context, has_extension, is_sessionless, who_asks
from luftpause.services.runtime.mcp_door.task_desk import TaskDesk, UnknownTaskError, created_on_wire, on_wire
from luftpause.services.runtime.schema_words import shown

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
NAME_HEADER: Final = "mcp-name"


class TaskParams(RequestParams):
    """Of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateParams(TaskParams):
    """Of `tasks/update`. What answers look like depends on what was asked; whoever asked reads them."""

    input_responses: dict[str, Any] | None = None


class Tasks:
    """Serves the extension's methods from a desk."""

    def __init__(self, desk: TaskDesk) -> None:
        self.desk = desk

    def serve_on(self, server: Server[object]) -> None:
        """Add the extension to a server."""
        server.extensions[TASKS_EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    def created(self, context: Context, task: str) -> dict[str, object]:
        """Return the result of a call that became this task, which is durable."""
        return created_on_wire(self.desk.look(who_asks(context).name, task))

    async def _get(self, context: Context, params: TaskParams) -> dict[str, object]:
        principal = _admitted(context, params)
        try:
            return on_wire(self.desk.look(principal, params.task_id))
        except UnknownTaskError as error:
            raise _unknown(params.task_id) from error

    async def _update(self, context: Context, params: UpdateParams) -> dict[str, object]:
        principal = _admitted(context, params)
        try:
            await self.desk.answer(principal, params.task_id, params.input_responses or {})
        except UnknownTaskError as error:
            raise _unknown(params.task_id) from error
        return {}

    async def _cancel(self, context: Context, params: TaskParams) -> dict[str, object]:
        principal = _admitted(context, params)
        try:
            await self.desk.cancel(principal, params.task_id)
        except UnknownTaskError as error:
            raise _unknown(params.task_id) from error
        return {}


def wants_tasks(context: Context) -> bool:
    """Whether a call of this client may become a task."""
    return is_sessionless(context) and has_extension(context, TASKS_EXTENSION)


def require_tasks(context: Context) -> None:
    """Refuse a client that did not say it knows tasks.

    Raises:
        MCPError: it did not.
    """
    if not has_extension(context, TASKS_EXTENSION):
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message=f"this needs a client that declares the extension {TASKS_EXTENSION}",
            data={"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}},
        )


def _admitted(context: Context, params: TaskParams) -> PrincipalId:
    """Return who asks for a task.

    Raises:
        MCPError: the client cannot have one, or its headers name another one.
    """
    if not is_sessionless(context):
        raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=context.method)
    require_tasks(context)
    # The SDK compares this header for methods of the core only.
    if context.request is not None and context.request.headers.get(NAME_HEADER) != params.task_id:
        raise MCPError(code=HEADER_MISMATCH, message=f"the header {NAME_HEADER} must name the task of the request")
    return who_asks(context).name


def _unknown(task: str) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=f"there is no task {shown(task)}")
