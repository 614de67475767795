"""The MCP SDK's HTTP transport for clients that leave while calls are under way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import BrokenResourceError, ClosedResourceError
from httpx2 import AsyncClient
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def http_transport(url: str, http: AsyncClient) -> AsyncIterator[TransportStreams]:
    """Reach an MCP server at `url`; whoever leaves this well leaves it without an error.

    The SDK's own transport fails when an answer comes after its client is gone and before its tasks are cancelled: the
    answer finds the stream closed at either end, and that becomes an exception group. Nobody waits
    for that answer any more.
    """
    left = False
    try:
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams
            left = True
    except* (BrokenResourceError, ClosedResourceError):
        if not left:
            raise
