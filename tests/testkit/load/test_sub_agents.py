"""Sub-agents, against a stand-in for the MCP door on the real SDK."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool

from luftpause.testkit.load.closed_loop import closed_loop
from luftpause.testkit.load.own_loop import Habits
from luftpause.testkit.load.runs import Board, RunFailedError
from luftpause.testkit.load.sub_agents import mcp_client, sub_agent
from luftpause.testkit.load.summary import Summary, summarise
from luftpause.testkit.serving import bind, serving, url_of
from testkit.running import run

HABITS = Habits(
    model="m", service_class="batch", caller="me", tool_calls=2, tool_s=0.0, context_chars=50, max_tokens=64
)


@dataclass
class Door:
    """Answers `await` with each status of the script in turn, the last one for ever."""

    statuses: tuple[str, ...]
    structured: bool = True
    error: str = ""
    spawned: list[dict[str, Any]] = field(default_factory=list)
    callers: set[str] = field(default_factory=set)
    asked: dict[str, int] = field(default_factory=dict)

    async def call(self, context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        if self.error:
            return CallToolResult(content=[TextContent(text=self.error)], is_error=True)
        arguments = params.arguments or {}
        answer: dict[str, Any]
        if params.name == "spawn":
            self.spawned.append(arguments)
            request = context.request
            self.callers.add(request.headers.get("x-luftpause-caller") if request is not None else "")
            answer = {"handle": f"run-{len(self.spawned)}"}
        else:
            [handle] = arguments["handles"]
            count = self.asked[handle] = self.asked.get(handle, 0) + 1
            status = self.statuses[min(count, len(self.statuses)) - 1]
            error = "it broke" if status == "Failed" else None
            result = "all done" if status == "Finished" else None
            answer = {"runs": [{"handle": handle, "status": status, "result": result, "error": error, "toolCalls": 2}]}
        text = TextContent(text=json.dumps(answer))
        return CallToolResult(content=[text], structured_content=answer if self.structured else None)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        async def listed(_c: ServerRequestContext[Any], _p: PaginatedRequestParams | None) -> ListToolsResult:
            return ListToolsResult(
                tools=[Tool(name=name, input_schema={"type": "object"}) for name in ("spawn", "await")]
            )

        server = Server("door", on_list_tools=listed, on_call_tool=self.call)
        listener = bind("127.0.0.1", 0)
        url = f"{url_of(listener)}/mcp"
        async with serving(server.streamable_http_app(), listener, lifespan=True):
            yield url


def fanned_out(door: Door, count: int = 4) -> Summary:
    async def once() -> Summary:
        board = Board()
        async with door.open() as url, mcp_client(url, token="", caller="me") as client:
            await closed_loop(sub_agent(client, HABITS), board, workers=count, runs=count, duration_s=None)
        return summarise(board)

    return run(once())


def test_sub_agents_are_spawned_with_their_orders_and_awaited_until_they_end() -> None:
    door = Door(("Running", "Running", "Finished"))
    summary = fanned_out(door)
    assert (summary.runs, summary.failed, summary.tool_calls) == (4, 0, 8)
    assert set(door.asked.values()) == {3}
    assert door.callers == {"me"}
    for order in door.spawned:
        assert (order["serviceClass"], order["maxToolCalls"], order["model"], order["maxTokens"]) == (
            "batch",
            2,
            "m",
            64,
        )
    assert len({order["task"] for order in door.spawned}) == 4


def test_a_task_that_was_given_reaches_every_sub_agent_unchanged_and_its_answer_is_kept() -> None:
    door = Door(("Running", "Finished"))
    board = Board()

    async def once() -> None:
        async with door.open() as url, mcp_client(url, token="", caller="") as client:
            habits = replace(HABITS, task="say hello")
            await closed_loop(sub_agent(client, habits), board, workers=2, runs=2, duration_s=None)

    run(once())
    assert [order["task"] for order in door.spawned] == ["say hello", "say hello"]
    assert [notes.result for notes in board.ended] == ["all done", "all done"]


def test_answers_as_text_alone_are_understood() -> None:
    assert fanned_out(Door(("Finished",), structured=False), 1).runs == 1


@pytest.mark.parametrize(("status", "kind"), [("Failed", "run_failed"), ("Cancelled", "run_cancelled")])
def test_a_sub_agent_that_ends_badly_is_a_failed_run(status: str, kind: str) -> None:
    assert fanned_out(Door(("Running", status)), 1).errors == {kind: 1}


def test_a_refused_call_is_a_failed_run_that_says_why() -> None:
    summary = fanned_out(Door((), error="no more runs"), 1)
    assert summary.errors == {"tool_error": 1}
    assert "no more runs" in str(summary.first_error)


def test_a_door_that_is_not_there_is_said_to_be_unreachable() -> None:
    async def knock() -> None:
        async with mcp_client("http://127.0.0.1:1/mcp", token="", caller=""):
            await asyncio.Event().wait()

    with pytest.raises(RunFailedError) as caught:
        run(knock())
    assert caught.value.kind == "unreachable"
