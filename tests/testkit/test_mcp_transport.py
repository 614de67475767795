"""Leaving an MCP server while it still owes answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from httpx2 import AsyncClient, MockTransport, Request, Response
from mcp import Client

from luftpause.testkit.mcp_transport import http_transport
from testkit.running import run

URL = "http://tools.test/mcp"
STEPS = 50
"""More steps of the loop than an answer needs from the wire to its reader."""


class LateServer:
    """Answers a tool call only while its client says goodbye."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.leaving = asyncio.Event()
        self.answered = False

    async def __call__(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.leaving.set()
            for _ in range(STEPS):
                await asyncio.sleep(0)
            assert self.answered
            return Response(200)
        if request.method != "POST":
            return Response(405)
        message = json.loads(request.content)
        if "id" not in message:
            return Response(202)
        result: dict[str, object] = {"content": []}
        if message["method"] == "initialize":
            info = {"name": "late", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        elif message["method"] == "tools/list":
            result = {"tools": []}
        else:
            self.called.set()
            await self.leaving.wait()
            self.answered = True
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return Response(200, json=answer, headers={"mcp-session-id": "s"})


@asynccontextmanager
async def connected(server: LateServer) -> AsyncIterator[Client]:
    async with (
        AsyncClient(transport=MockTransport(server)) as http,
        Client(http_transport(URL, http), mode="legacy") as client,
    ):
        yield client


async def give_up_a_call(client: Client, server: LateServer) -> None:
    call = asyncio.create_task(client.call_tool("slow", {}))
    await server.called.wait()
    call.cancel()
    await asyncio.wait({call})


def test_an_answer_that_comes_while_we_leave_is_nobodys_and_no_error() -> None:
    async def leave() -> bool:
        server = LateServer()
        async with connected(server) as client:
            await give_up_a_call(client, server)
        return server.answered

    assert run(leave())


def test_whoever_is_cancelled_leaves_cancelled_whatever_comes_then() -> None:
    async def stay(server: LateServer) -> None:
        async with connected(server) as client:
            await client.call_tool("slow", {})

    async def leave() -> bool:
        server = LateServer()
        staying = asyncio.create_task(stay(server))
        await server.called.wait()
        staying.cancel()
        await asyncio.wait({staying})
        assert server.answered
        return staying.cancelled()

    assert run(leave())


def test_whoever_leaves_for_a_fault_leaves_with_that_whatever_comes_then() -> None:
    async def leave(server: LateServer) -> None:
        async with connected(server) as client:
            await give_up_a_call(client, server)
            raise LookupError("a fault of its own")

    server = LateServer()
    with pytest.raises(BaseExceptionGroup) as caught:
        run(leave(server))
    assert server.answered
    assert caught.value.split(LookupError)[1] is None
