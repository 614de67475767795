"""The fake MCP server: the tools on the official SDK, over streamable HTTP (both protocol eras) or stdio."""

import asyncio
import contextlib
import itertools
import random
import socket
from collections.abc import AsyncIterator
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from luftpause import __version__
from luftpause.testkit.fake_mcp.tools import Settings, offered_tools, record_effect
from luftpause.testkit.serving import bind, serving, url_of


@contextlib.asynccontextmanager
async def fake_mcp(settings: Settings | None = None, *, listener: socket.socket | None = None) -> AsyncIterator[str]:
    """Serve the tools at `/mcp` and yield the base URL; without a listener on a free port of the loopback."""
    bound = listener or bind("127.0.0.1", 0)
    url = url_of(bound)
    app = _server(settings or Settings()).streamable_http_app(
        host=bound.getsockname()[0], custom_starlette_routes=[Route("/health", _health)]
    )
    async with serving(app, bound, lifespan=True):
        yield url


async def serve_stdio(settings: Settings) -> None:
    """Serve the tools on standard input and output until the input ends."""
    server = _server(settings)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _server(settings: Settings) -> Server[Any]:
    tools = offered_tools(settings)
    numbers = itertools.count()

    async def list_tools(
        _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[tool.tool for tool in tools.values()])

    async def call_tool(_context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            return _failed(f"there is no tool {params.name!r}; there are: {', '.join(tools)}")
        arguments = params.arguments or {}
        value = arguments.get(tool.argument)
        if not isinstance(value, str) or len(arguments) > 1:
            return _failed(f"{params.name} takes one argument, {tool.argument!r}, a string")
        if settings.effects is not None:
            await asyncio.to_thread(record_effect, settings.effects, params.name, value)
        timing = random.Random(f"{settings.seed}:{next(numbers)}")  # noqa: S311 - made-up delays
        await asyncio.sleep(tool.delay_s(timing))
        wording = random.Random(f"{settings.seed}:{params.name}:{value}")  # noqa: S311 - made-up answers
        return CallToolResult(content=[TextContent(text=tool.answer(value, wording))])

    return Server("luftpause-fake-mcp", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _failed(reason: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=reason)], is_error=True)


async def _health(_request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})
