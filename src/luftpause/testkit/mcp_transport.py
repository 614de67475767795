"""The MCP SDK's HTTP transport for clients that leave while calls are under way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self

from anyio import BrokenResourceError, create_memory_object_stream, create_task_group
from anyio.streams.memory import MemoryObjectSendStream
from httpx2 import AsyncClient
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage


@asynccontextmanager
async def http_transport(url: str, http: AsyncClient) -> AsyncIterator[TransportStreams]:
    """Reach an MCP server at `url`, and leave it without an error whatever it still answers.

    The SDK's own transport fails, and hides why its client leaves, when an answer comes after the client has closed the
    streams and before the transport has ended. So they stay open until then; nobody waits for that answer any more.
    """
    heard, hearing = create_memory_object_stream[SessionMessage | Exception](0)
    async with create_task_group() as group, streamable_http_client(url, http_client=http) as (read, write):
        group.start_soon(_pass_on, read, heard)
        async with hearing:
            yield hearing, _LeftOpen(write)


async def _pass_on(
    read: ReadStream[SessionMessage | Exception], heard: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    async with heard:
        async for item in read:
            with suppress(BrokenResourceError):  # whoever asked has left
                await heard.send(item)


class _LeftOpen:
    """A stream that stays open when its user closes it."""

    def __init__(self, stream: WriteStream[SessionMessage]) -> None:
        self._stream = stream

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)

    async def aclose(self) -> None:
        """Leave it to its owner."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
