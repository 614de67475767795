"""A TCP relay that a test can cut: to a client of the link it looks like a network."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType


class Relay:
    """Passes bytes between whoever connects and `target`. While `target` is None it hangs up at once."""

    def __init__(self, target: int | None = None) -> None:
        self.target = target
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Relay":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self.target = None
        await settle()
        self._server.close()
        while self._serving:
            self.cut()
            await asyncio.wait(self._serving)
        await self._server.wait_closed()

    def cut(self) -> None:
        """Reset every connection at once."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._serving.add(this)
        writers = [writer]
        try:
            if self.target is not None:
                there, onward = await asyncio.open_connection("127.0.0.1", self.target)
                writers.append(onward)
                self._writers.update(writers)
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pump(reader, onward))
                    both.create_task(_pump(there, writer))
        except ConnectionError:
            pass
        finally:
            self._writers.difference_update(writers)
            for each in writers:
                await hang_up(each)
            self._serving.discard(this)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection and return once it is gone."""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def settle() -> None:
    """Let the loop turn: asyncio loses a connection that it has accepted and not yet served when its server closes."""
    for _ in range(3):
        await asyncio.sleep(0)


NewLoop = Callable[[], asyncio.AbstractEventLoop]


def bounded(
    test: Callable[[], Awaitable[None]], *, timeout_s: float = 30.0, new_loop: NewLoop = asyncio.new_event_loop
) -> None:
    """Run a test's coroutine, at most so long."""

    async def run() -> None:
        async with asyncio.timeout(timeout_s):
            await test()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
