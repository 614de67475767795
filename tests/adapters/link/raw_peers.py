"""Both ends of the link as a test plays them by hand: frames or any bytes, sent when the test says so."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from contracts.offers import PEER
from contracts.relay import hang_up, settle
from luftpause.adapters.link.codec import FrameReader, server_frame, to_bytes
from luftpause.adapters.link.frames import LINK_PROTOCOL, ClientFrame, Hello, Resync, ServerFrame, Welcome
from luftpause.core.model.ids import PeerId

WAIT_S = 10.0
RESYNC = Resync((), (), last=True)


class RawClient:
    """A client that keeps no rules."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader()
        self._heard: list[ServerFrame] = []

    def say(self, *frames: ClientFrame | bytes) -> None:
        for frame in frames:
            self._writer.write(frame if isinstance(frame, bytes) else to_bytes(frame))

    async def greet(self, peer: str = PEER, token: str = "") -> None:
        self.say(Hello(LINK_PROTOCOL, PeerId(peer), token), RESYNC)
        assert isinstance(await self.hear(), Welcome)

    async def hear(self) -> ServerFrame | None:
        """Return the next frame, None once the server has closed."""
        async with asyncio.timeout(WAIT_S):
            while not self._heard:
                try:
                    data = await self._reader.read(65536)
                except ConnectionResetError:
                    return None
                if not data:
                    return None
                self._heard += [server_frame(payload) for payload in self._frames.feed(data)]
            return self._heard.pop(0)

    async def hear_all(self) -> list[ServerFrame]:
        """Return what is said until the server closes."""
        frames = []
        while (frame := await self.hear()) is not None:
            frames.append(frame)
        return frames

    def close(self) -> None:
        self._writer.transport.abort()

    async def gone(self) -> None:
        self.close()
        await hang_up(self._writer)


@contextlib.asynccontextmanager
async def raw_client(port: int) -> AsyncIterator[RawClient]:
    client = RawClient(*await asyncio.open_connection("127.0.0.1", port, limit=1024))
    try:
        yield client
    finally:
        await client.gone()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def raw_server(serve: Serve) -> AsyncIterator[int]:
    """Listen and let `serve` play the scheduler on each connection; yields the port."""

    serving: set[asyncio.Task[None]] = set()

    async def played(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        serving.add(this)
        try:
            await serve(reader, writer)
            await reader.read()
        except ConnectionError:
            pass
        finally:
            await hang_up(writer)
            serving.discard(this)

    server = await asyncio.start_server(played, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await settle()
        server.close()
        if serving:
            await asyncio.wait(serving)
        await server.wait_closed()
