"""One socket to an engine: writes a request with back-pressure, hands what arrives to the exchange under way."""

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol, cast

from luftpause.adapters.engine_http.exchange import Answers, HttpExchange, Wire
from luftpause.adapters.engine_http.origin import Origin

SMALL_BODY_BYTES: Final = 16 * 1024
"""Bodies up to here are joined with their header: one write, one packet train."""

AT_ONCE_BYTES: Final = 256 * 1024
"""Larger bodies are written in slices, each after the one before has left us."""

SLICE_BYTES: Final = 64 * 1024

READ_BYTES: Final = 64 * 1024
"""Bytes that are taken from a socket at a time."""

_NO_REQUEST_CAME: Final = b"HTTP/1.1 408", b"HTTP/1.0 408"
"""How some servers take leave of a connection that waits (RFC 9110, 15.5.9)."""

_EMPTY_LINE: Final = b"\r\n"
"""Some servers write it behind an answer. It can be taken for none: every parser skips it before a status line."""


class Socket(Protocol):
    """What a connection needs below it: a plain transport, or TLS on one."""

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes, now or as soon as may be."""
        ...

    def is_closing(self) -> bool:
        """Say whether it is of no use any more."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...

    def pause_reading(self) -> None:
        """Deliver nothing."""
        ...

    def resume_reading(self) -> None:
        """Deliver again."""
        ...


class Owner(Protocol):
    """Who opens connections, and is told what becomes of them."""

    def has_unread(self, descriptor: int) -> bool:
        """Say whether something came on a socket, by its descriptor, that was not read yet, or its end."""
        ...

    def released(self, connection: "Connection", *, reusable: bool) -> None:
        """Its exchange has ended. `reusable`: it can carry another one."""
        ...

    def lost(self, connection: "Connection") -> None:
        """It is gone."""
        ...

    def unasked(self, connection: "Connection") -> None:
        """Its engine said something that nobody asked for."""
        ...


class Connection(asyncio.BufferedProtocol, Wire):
    """A connection that is idle or carries one exchange.

    Args:
        owner: who is told what becomes of it.
        origin: where it leads.
        loop: the event loop.
        buffer: where a socket is read into. Nothing stays there, so all connections of a loop may share it.

    Attributes:
        origin: see above.
        idle_since: loop time at which it was last given back, seconds.
        written: whether the last request has gone out whole.
    """

    __slots__ = (
        "_answers",
        "_buffer",
        "_drained",
        "_exchange",
        "_loop",
        "_owner",
        "_socket",
        "idle_since",
        "origin",
        "transport",
        "written",
    )

    def __init__(
        self,
        owner: Owner,
        origin: Origin,
        *,
        loop: asyncio.AbstractEventLoop,
        buffer: memoryview,
    ) -> None:
        self.origin = origin
        self.transport: Socket | None = None
        self.idle_since = 0.0
        self._loop = loop
        self._buffer = buffer
        self._answers = Answers()
        self._exchange: HttpExchange | None = None
        self._drained: asyncio.Future[None] | None = None
        self.written = True
        self._owner = owner
        self._socket = -1

    @property
    def usable(self) -> bool:
        """Whether a request can be sent here now. What came in and was not read yet would be taken for its answer."""
        transport = self.transport
        if transport is None or transport.is_closing() or self._exchange is not None:
            return False
        return self._socket < 0 or not self._owner.has_unread(self._socket)

    def exchange(self, *, method: bytes, head: bytes, body: bytes) -> Awaitable[HttpExchange]:
        """Send a request; await its exchange, which is there once status and headers have arrived.

        Raises:
            EngineUnreachableError: the connection closed before any byte of an answer.
            EngineBrokeError: what arrived was no answer.
        """
        exchange = self._exchange = HttpExchange(self, self._answers, method=method, loop=self._loop)
        if self.transport is None:
            exchange.lost(None)  # as it came to stand: nobody else would tell
        if len(body) > AT_ONCE_BYTES:
            return self._exchange_slowly(exchange, head, body)
        try:
            self._write_at_once(head, body)
        except BaseException:
            exchange.close()
            raise
        return exchange.head()

    def abort(self) -> None:
        """Close the socket at once."""
        if self.transport is not None:
            self.transport.abort()

    async def _exchange_slowly(self, exchange: HttpExchange, head: bytes, body: bytes) -> HttpExchange:
        try:
            await self._write(exchange, head, body)
        except BaseException:
            exchange.close()
            raise
        return await exchange.head()

    def _write_at_once(self, head: bytes, body: bytes) -> None:
        transport = self.transport
        if transport is None:
            return
        if len(body) <= SMALL_BODY_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)

    async def _write(self, exchange: HttpExchange, head: bytes, body: bytes) -> None:
        transport = self.transport
        if transport is None:
            return
        self.written = False
        transport.write(head)
        view = memoryview(body)
        for start in range(0, len(body), SLICE_BYTES):
            drained = self._drained
            if drained is not None:
                await drained
            if exchange.status or transport.is_closing():
                return  # answered early, or lost: the rest of the body is wanted no more
            transport.write(view[start : start + SLICE_BYTES])
        self.written = True

    def release(self, *, reusable: bool, surplus: bool) -> None:
        """See `Wire.release`."""
        self._exchange = None
        if surplus:
            self._owner.unasked(self)
        self._owner.released(self, reusable=reusable and self.written)

    def pause_reading(self) -> None:
        """Let the engine wait."""
        if self.transport is not None:
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Event loop callback."""
        self.transport = cast("Socket", transport)
        plain = transport.get_extra_info("socket")
        if plain is not None:
            self._socket = plain.fileno()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Event loop callback: return where to read into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Event loop callback: bytes were read. Those that nobody asked for make the connection unfit."""
        if self._exchange is not None:
            self._exchange.feed(self._buffer[:nbytes])
            return
        unasked = bytes(self._buffer[:nbytes])
        if unasked == _EMPTY_LINE:
            return
        if not unasked.startswith(_NO_REQUEST_CAME):
            self._owner.unasked(self)
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Event loop callback."""
        self.transport = None
        if self._exchange is not None:
            self._exchange.lost(exc)
        self.resume_writing()
        self._owner.lost(self)

    def pause_writing(self) -> None:
        """Event loop callback: the socket takes no more for now."""
        if self._drained is None:
            self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """Event loop callback: the socket takes more. Also called when nothing more need be written."""
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
