"""Leaving an MCP server while it still owes answers."""

import asyncio
import json

import pytest
from anyio import BrokenResourceError, ClosedResourceError
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


def test_an_answer_that_comes_while_we_leave_is_nobodys_and_no_error() -> None:
    async def leave() -> bool:
        server = LateServer()
        async with (
            AsyncClient(transport=MockTransport(server)) as http,
            Client(http_transport(URL, http), mode="legacy") as client,
        ):
            call = asyncio.create_task(client.call_tool("slow", {}))
            await server.called.wait()
            call.cancel()
            await asyncio.wait({call})
        return server.answered

    assert run(leave())


@pytest.mark.parametrize("error", [BrokenResourceError, ClosedResourceError])
def test_a_stream_that_breaks_while_somebody_is_there_is_an_error(error: type[Exception]) -> None:
    async def meet() -> None:
        async with (
            AsyncClient(transport=MockTransport(lambda _: Response(405))) as http,
            http_transport(URL, http),
        ):
            raise error

    with pytest.raises(BaseExceptionGroup) as caught:
        run(meet())
    assert caught.group_contains(error)
