"""An engine made of a raw socket and a script: every byte and every gap is the test's decision."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")

LIMIT_S = 20.0

LOOP_FACTORY: ContextVar[Callable[[], asyncio.AbstractEventLoop] | None] = ContextVar("loop_factory", default=None)
"""Makes the event loop that `run_bounded` runs on; None means asyncio's own."""


def run_bounded(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end, or fail."""

    async def bounded() -> T:
        async with asyncio.timeout(LIMIT_S):
            return await coroutine

    with asyncio.Runner(loop_factory=LOOP_FACTORY.get()) as runner:
        return runner.run(bounded())


async def eventually(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Give the event loop turns until something holds."""
    async with asyncio.timeout(within_s):
        while True:
            if condition():
                return
            await asyncio.sleep(0)


async def at_rest(count: Callable[[], int], turns: int = 500) -> None:
    """Give the event loop turns until something has not grown for many: all its ends are in this loop and stuck."""
    before, quiet = count(), 0
    async with asyncio.timeout(LIMIT_S):
        while quiet < turns:
            await asyncio.sleep(0)
            quiet = quiet + 1 if count() == before else 0
            before = count()


@dataclass(slots=True)
class Received:
    """A request as it came over the wire."""

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        values = [value for key, value in self.headers if key.lower() == name]
        assert len(values) < 2, f"{name!r} was sent {len(values)} times"
        return values[0] if values else None


@dataclass(slots=True)
class Visit:
    """One connection that a client opened."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self) -> Received:
        """Return the next request, whole."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        line, *rest = head[:-4].split(b"\r\n")
        headers = [(name, value.strip()) for name, _, value in (field.partition(b":") for field in rest)]
        received = Received(line, headers, b"")
        received.body = await self.reader.readexactly(int(received.header(b"content-length") or 0))
        return received

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def read_no_more(self) -> None:
        """Leave what comes in the sockets' buffers."""
        cast("asyncio.Transport", self.writer.transport).pause_reading()

    def read_again(self) -> None:
        cast("asyncio.Transport", self.writer.transport).resume_reading()

    async def left(self) -> None:
        """Return when the client has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        self.closed.set()

    def abort(self) -> None:
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


Script = Callable[[Visit], Awaitable[None]]


class ScriptedEngine:
    """Runs the script for every connection. A script that fails makes the test fail."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.visits: list[Visit] = []
        self.port = 0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["ScriptedEngine"]:
        server = await asyncio.start_server(self._welcome, "127.0.0.1", self.port, limit=64 * 1024 * 1024)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for visit in self.visits:
                visit.abort()
            for task in self._tasks:
                task.cancel()
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
            for result in results:
                if isinstance(result, Exception) and not isinstance(
                    result, ConnectionError | asyncio.IncompleteReadError
                ):
                    raise result

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = Visit(reader, writer)
        self.visits.append(visit)
        self._tasks.append(asyncio.create_task(self._run(visit)))

    async def _run(self, visit: Visit) -> None:
        try:
            await self.script(visit)
        finally:
            await visit.close()


def answer(body: bytes, *, status: bytes = b"200 OK", headers: bytes = b"content-type: application/json\r\n") -> bytes:
    """Return an answer with a content-length."""
    return b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (status, headers, len(body), body)


def chunked(*pieces: bytes, headers: bytes = b"content-type: text/event-stream\r\n", end: bool = True) -> bytes:
    """Return an answer in chunks."""
    return (
        b"HTTP/1.1 200 OK\r\n%btransfer-encoding: chunked\r\n\r\n" % headers
        + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        + (b"0\r\n\r\n" if end else b"")
    )
