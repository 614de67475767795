"""Sub-agents over the MCP door: spawn one, await it, note how long it took. On the official client."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import msgspec
from httpx2 import HTTPError
from mcp import Client, MCPError
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import TextContent

from luftpause.testkit.load.closed_loop import OneRun
from luftpause.testkit.load.own_loop import Habits
from luftpause.testkit.load.runs import RunFailedError, RunNotes
from luftpause.testkit.load.tasks import context_text, task_text
from luftpause.testkit.mcp_transport import http_transport

AWAIT_S = 60
"""How long one `await` call waits before the next one, seconds; below the usual limits of MCP clients."""

ANSWER_S = 30.0
"""How much longer than it should a call may take, seconds."""


class _Spawned(msgspec.Struct):
    handle: str


class _Run(msgspec.Struct):
    handle: str
    status: str
    result: str | None = None
    error: str | None = None
    toolCalls: int = 0


class _Awaited(msgspec.Struct):
    runs: list[_Run]


_Kind = TypeVar("_Kind", _Spawned, _Awaited)


@contextlib.asynccontextmanager
async def mcp_client(url: str, *, token: str, caller: str) -> AsyncIterator[Client]:
    """Connect to an MCP server; empty token or caller sends no such header.

    Raises:
        RunFailedError: it cannot be reached, or is lost for good.
    """
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if caller:
        headers["x-luftpause-caller"] = caller
    try:
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(http_transport(url, http)) as client,
        ):
            yield client
    except MCPError as refused:
        raise RunFailedError("mcp_error", f"{url}: {refused}") from refused
    except BaseExceptionGroup as group:  # the SDK's tasks wrap what happened to one of them
        lost, others = group.split((MCPError, HTTPError))
        if others is not None or lost is None:
            raise
        raise RunFailedError("unreachable", f"{url}: {_first(lost)}") from lost


def sub_agent(client: Client, habits: Habits) -> OneRun:
    """Return what one run of a sub-agent is: spawned, awaited until it ends."""
    batch = secrets.token_hex(8)

    async def one_run(notes: RunNotes) -> None:
        order: dict[str, object] = {
            "task": habits.task or _made_up_task(batch, notes.number, habits),
            "serviceClass": habits.service_class,
            "maxToolCalls": habits.tool_calls,
            "maxTokens": habits.max_tokens,
        }
        if habits.model:
            order["model"] = habits.model
        handle = (await _called(client, "spawn", order, _Spawned)).handle
        while (run := await _awaited(client, handle)).status == "Running":
            pass
        notes.tool_calls = run.toolCalls
        notes.result = run.result or ""
        if run.status != "Finished":
            raise RunFailedError(f"run_{run.status.lower()}", run.error or f"the run is {run.status}")

    return one_run


def _made_up_task(batch: str, number: int, habits: Habits) -> str:
    context = context_text(f"loadgen-{batch}-{number}", habits.context_chars)
    return f"{task_text(number, habits.tool_calls)}\n\n{context}".strip()


async def _awaited(client: Client, handle: str) -> _Run:
    order: Mapping[str, object] = {"handles": [handle], "mode": "all", "timeout": AWAIT_S}
    runs = (await _called(client, "await", order, _Awaited)).runs
    if not runs:
        raise RunFailedError("bad_reply", f"await names no run for {handle!r}")
    return runs[0]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


async def _called(client: Client, tool: str, order: Mapping[str, object], kind: type[_Kind]) -> _Kind:
    try:
        result = await client.call_tool(tool, dict(order), read_timeout_seconds=AWAIT_S + ANSWER_S)
    except MCPError as failed:
        raise RunFailedError("mcp_error", f"{tool}: {failed}") from failed
    except asyncio.CancelledError as lost:
        # The SDK's HTTP client tells of a lost server by a cancellation that nobody asked for.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RunFailedError("mcp_lost", f"{tool}: the connection is lost") from lost
    text = "".join(part.text for part in result.content if isinstance(part, TextContent))
    if result.is_error:
        raise RunFailedError("tool_error", f"{tool}: {text}")
    try:
        if result.structured_content is not None:
            return msgspec.convert(result.structured_content, kind)
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as invalid:
        raise RunFailedError("bad_reply", f"{tool}: {invalid}") from invalid
