"""The tools of the door: each one's way from its arguments to its answer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from mcp.server.context import HandlerResult
from mcp_types import InputRequiredResult

from luftpause.core.model.ids import ModelName, RunId, ToolCallId
from luftpause.core.model.traces import context_in
from luftpause.core.runs.events import ApprovalScope
from luftpause.ports.decisions import DecisionFailedError, DecisionRequest, Decisions
from luftpause.services.runtime.identity import caller_of
from luftpause.services.runtime.mcp_door import answers
from luftpause.services.runtime.mcp_door.arguments import (
    ApproveArguments,
    AwaitArguments,
    CancelArguments,
    DecideArguments,
    SendArguments,
    StatusArguments,
    TranscriptArguments,
    complaint,
)
from luftpause.services.runtime.mcp_door.calls import OfferedTool, ToolCall, is_sessionless
from luftpause.services.runtime.mcp_door.orphans import Orphans
from luftpause.services.runtime.mcp_door.spawn_order import headers_of, meta_of, order_of, traceparent_of
from luftpause.services.runtime.mcp_door.tasks import Tasks, wants_tasks
from luftpause.services.runtime.mcp_door.tool_list import tools_with
from luftpause.services.runtime.mcp_door.waiting import Wait, Waiting
from luftpause.services.runtime.orders import (
    NotKeptError,
    SendRefusedError,
    SpawnRefusedError,
    UnknownHandleError,
)
from luftpause.services.runtime.service import RuntimeService

BY_TOOL: Final = "the approve tool"
Handler = Callable[[ToolCall], Awaitable[HandlerResult]]
_REFUSALS: Final = (
    SpawnRefusedError,
    SendRefusedError,
    UnknownHandleError,
    NotKeptError,
    DecisionFailedError,
    # Arguments too many to be judged show here what is wrong with them.
    msgspec.ValidationError,
)


class RunTools:
    """Answers calls of the door's tools."""

    def __init__(
        self, service: RuntimeService, decisions: Decisions, waiting: Waiting, tasks: Tasks, orphans: Orphans
    ) -> None:
        self._service = service
        self._settings = service.settings
        self._decisions = decisions
        self._waiting = waiting
        self._tasks = tasks
        self._orphans = orphans

    def offered(self) -> list[OfferedTool]:
        """Return all tools, always in the same order."""
        by_name: Mapping[str, Handler] = {
            "spawn": self._spawn,
            "await": self._await,
            "run": self._run,
            "status": self._status,
            "cancel": self._cancel,
            "approve": self._approve,
            "tools": self._list_tools,
            "decide": self._decide,
            "send": self._send,
            "transcript": self._transcript,
        }
        return [
            OfferedTool(tool=tool, answer=_checked(tool.input_schema, by_name[tool.name]))
            for tool in tools_with(self._settings)
        ]

    async def _spawn(self, call: ToolCall) -> HandlerResult:
        order = order_of(call, self._settings)
        handle = await self._service.spawn(order)
        return answers.result(answers.noted({"handle": handle}, self._service.note_on(order)))

    async def _await(self, call: ToolCall) -> HandlerResult:
        asked = msgspec.convert(dict(call.arguments), AwaitArguments)
        timeout_s = self._settings.await_default_s if asked.timeout is None else asked.timeout
        waited = await self._waiting.wait(call, Wait(handles=asked.handles, mode=asked.mode, timeout_s=timeout_s))
        return waited if isinstance(waited, InputRequiredResult) else answers.result(answers.runs(waited))

    async def _run(self, call: ToolCall) -> HandlerResult:
        handle = await self._begun(call)
        if wants_tasks(call.context) and not call.params.request_state:
            return self._tasks.created(call.context, handle)
        try:
            waited = await self._waiting.wait(call, Wait(handles=(handle,), state=handle))
        except asyncio.CancelledError:
            if is_sessionless(call.context) and not call.arguments.get("idempotencyKey"):
                self._orphans.leave(call.principal.name, handle)
            raise
        if isinstance(waited, InputRequiredResult):
            return waited
        return answers.run_result(waited[0], self._service.note_on(order_of(call, self._settings)))

    async def _begun(self, call: ToolCall) -> RunId:
        """Return the run of a `run` call: a new one, or the one that its state names when it brings an answer."""
        if call.params.request_state:
            return RunId(call.params.request_state)
        spawning = asyncio.ensure_future(self._service.spawn(order_of(call, self._settings)))
        try:
            return await asyncio.shield(spawning)
        except asyncio.CancelledError:
            if is_sessionless(call.context) and not call.arguments.get("idempotencyKey"):
                self._orphans.leave_when_spawned(call.principal.name, spawning)
            raise

    async def _status(self, call: ToolCall) -> HandlerResult:
        asked = msgspec.convert(dict(call.arguments), StatusArguments, strict=False)
        principal = call.principal.name
        if asked.handles is not None:
            return answers.result({**answers.runs(self._service.look(principal, asked.handles)), "omitted": 0})
        seen = self._service.glance(principal, asked.limit)
        return answers.result({"runs": await seen.each(answers.run), "omitted": seen.left_out})

    async def _cancel(self, call: ToolCall) -> HandlerResult:
        asked = msgspec.convert(dict(call.arguments), CancelArguments)
        return answers.result(answers.run(await self._service.cancel(call.principal.name, asked.handle)))

    async def _approve(self, call: ToolCall) -> HandlerResult:
        asked = msgspec.convert(dict(call.arguments), ApproveArguments)
        principal = call.principal.name
        which = None if asked.call is None else ToolCallId(asked.call)
        scope = ApprovalScope(asked.scope)
        decided = await self._service.approvals.approve(
            principal, asked.handle, which, allow=asked.allow, by=BY_TOOL, scope=scope
        )
        (view,) = self._service.look(principal, [asked.handle])
        return answers.result({**answers.run(view), "decided": decided})

    async def _list_tools(self, _call: ToolCall) -> HandlerResult:
        return answers.result({"tools": [answers.tool(tool) for tool in await self._service.catalogue()]})

    async def _decide(self, call: ToolCall) -> HandlerResult:
        asked = msgspec.convert(dict(call.arguments), DecideArguments)
        principal = call.principal
        request = DecisionRequest(
            input=asked.input,
            principal=principal.name,
            caller=caller_of(headers_of(call), meta_of(call), principal.name, max_bytes=self._settings.caller_bytes),
            service_class=principal.usual_class,
            labels=asked.labels,
            model=None if asked.model is None else ModelName(asked.model),
            trace=context_in(traceparent_of(call)),
        )
        return answers.result(answers.decision(await self._decisions.decide(request)))

    async def _send(self, call: ToolCall) -> HandlerResult:
        asked = msgspec.convert(dict(call.arguments), SendArguments)
        return answers.result(answers.run(await self._service.send(call.principal.name, asked.handle, asked.message)))

    async def _transcript(self, call: ToolCall) -> HandlerResult:
        asked = msgspec.convert(dict(call.arguments), TranscriptArguments, strict=False)
        principal = call.principal.name
        first = asked.start
        if first is None:
            whole = await self._service.transcript(principal, asked.handle, 0, 0)
            first = max(whole.total - asked.limit, 0)
        part = await self._service.transcript(principal, asked.handle, first, asked.limit)
        return answers.result(answers.transcript(asked.handle, part))


def _checked(schema: Mapping[str, object], answer: Handler) -> Handler:
    """Return the same tool, which tells its client in words what the client got wrong."""

    async def checked(call: ToolCall) -> HandlerResult:
        call = call.without_nulls()
        wrong = complaint(call.arguments, schema)
        if wrong:
            return answers.refusal(f"{call.params.name}: {wrong}")
        try:
            return await answer(call)
        except _REFUSALS as refusal:
            return answers.refusal(f"{call.params.name}: {refusal}")

    return checked
