"""Fixture tools that become tasks: each call spawns a run of the real runtime, whose model follows a script."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server.context import HandlerResult
from mcp_types import ElicitResult, InputRequiredResult

from conformance.asking import NAME, required
from conformance.content import Schema, offered, text
from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.runs.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from luftpause.core.runs.tools import ToolHints, ToolSpec
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime.mcp_door.calls import OfferedTool
from luftpause.services.runtime.mcp_door.calls import ToolCall as McpCall
from luftpause.services.runtime.mcp_door.task_desk import TaskDesk, TaskStatus, TaskView
from luftpause.services.runtime.mcp_door.tasks import Tasks, require_tasks, wants_tasks
from luftpause.services.runtime.mcp_door.waiting import Wait, Waiting
from luftpause.services.runtime.orders import SpawnOrder
from luftpause.services.runtime.service import RuntimeService

BROKEN = "protocol_error_job"
DELETE = ToolSpec(
    name="delete",
    server="files",
    tool="delete",
    description="Deletes",
    schema={"type": "object"},
    hints=ToolHints(says_destructive=True),
)


class ScriptedTurns:
    """The model: a run's task says which script it follows, as JSON."""

    async def take(self, request: TurnRequest) -> TurnReply:
        task = next(message.text for message in request.messages if isinstance(message, UserMessage))
        asked: dict[str, Any] = json.loads(task)
        heard = [message.text for message in request.messages if isinstance(message, ToolMessage)]
        match asked["tool"]:
            case "failing_job":
                raise TurnFailedError("it fails, as it should")
            case "slow_compute":
                await asyncio.sleep(float(asked.get("seconds", 0)))
            case "confirm_delete" | "multi_input" if not heard:
                return _calls(2 if asked["tool"] == "multi_input" else 1)
        return TurnReply(message=AssistantMessage(text=f"done: {task} {' '.join(heard)}"))

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        return


def _calls(number: int) -> TurnReply:
    calls = tuple(ToolCall(call=ToolCallId(f"c{place}"), tool="delete", arguments="{}") for place in range(number))
    return TurnReply(message=AssistantMessage(text="", tool_calls=calls))


class DangerousTools:
    """One tool that nobody should call without asking."""

    async def catalogue(self, _wanted: Sequence[str] | None = None) -> Sequence[ToolSpec]:
        return [DELETE]

    async def call(
        self, _tool: ToolSpec, _arguments: Mapping[str, object], _key: str, traceparent: str = ""
    ) -> ToolOutcome:
        return ToolOutcome(text="deleted")


class BreakingTasks:
    """The real desk, but that some tasks end in an error of the protocol, which no run does while its journal works."""

    def __init__(self, desk: TaskDesk) -> None:
        self._desk = desk
        self.broken: set[str] = set()

    def look(self, principal: PrincipalId, task: str) -> TaskView:
        view = self._desk.look(principal, task)
        if task not in self.broken or not view.status.is_over:
            return view
        error = {"code": -32603, "message": "it broke"}
        return TaskView(task=task, status=TaskStatus.FAILED, created=view.created, updated=view.updated, error=error)

    async def answer(self, principal: PrincipalId, task: str, responses: Mapping[str, object]) -> None:
        await self._desk.answer(principal, task, responses)

    async def cancel(self, principal: PrincipalId, task: str) -> None:
        await self._desk.cancel(principal, task)

    async def changed(self, principal: PrincipalId, seen: Sequence[TaskView]) -> None:
        await self._desk.changed(principal, seen)


def working_tools(service: RuntimeService, waiting: Waiting, tasks: Tasks, broken: set[str]) -> list[OfferedTool]:
    """Return the tools that take a while."""

    async def spawn(call: McpCall, **more: object) -> RunId:
        order = SpawnOrder(
            task=json.dumps({"tool": call.params.name, **call.arguments, **more}),
            principal=call.principal.name,
            caller=CallerId("conformance"),
            model=ModelName("scripted"),
            parallel_tool_calls=True,
        )
        run = await service.spawn(order)
        if call.params.name == BROKEN:
            broken.add(run)
        return run

    async def work(call: McpCall) -> HandlerResult:
        if wants_tasks(call.context):
            return tasks.created(call.context, await spawn(call))
        waited = await waiting.wait(call, Wait(handles=(await spawn(call),)))
        return waited if isinstance(waited, InputRequiredResult) else text(str(waited[0].result))

    async def only_as_a_task(call: McpCall) -> HandlerResult:
        require_tasks(call.context)
        return tasks.created(call.context, await spawn(call))

    async def ask_first(call: McpCall) -> HandlerResult:
        require_tasks(call.context)
        answer = (call.params.input_responses or {}).get("user_name")
        if not isinstance(answer, ElicitResult) or not answer.content:
            return required({"user_name": NAME}, "asked")
        return tasks.created(call.context, await spawn(call, name=answer.content.get("name")))

    properties: Schema = {name: {"type": "string"} for name in ("label", "filename")}
    schema: Schema = {"type": "object", "properties": {**properties, "seconds": {"type": "number"}}}
    return [
        *(offered(name, work, schema) for name in ("slow_compute", BROKEN, "confirm_delete", "multi_input")),
        offered("failing_job", only_as_a_task, schema),
        offered("test_tool_with_task", ask_first),
    ]
