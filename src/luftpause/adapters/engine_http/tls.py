"""TLS between a plain socket and the connection that uses it, driven by hand through OpenSSL's memory buffers.

The event loops' own TLS transports lose what they hold when an engine closes while its reader pauses, uvloop's always
and asyncio's past one buffer, and call an answer whole that was cut off. Here nothing is read ahead of the reader, and
an end without TLS's own goodbye is an error, as RFC 9112 (9.8) asks.
"""

import asyncio
import ssl
from typing import Final, cast

from luftpause.adapters.engine_http.connection import Connection

_RAGGED: Final = "without TLS's goodbye"
_UNEXPECTED_END: Final = "UNEXPECTED_EOF_WHILE_READING"
"""How OpenSSL calls it; Python before 3.11.4 has no class of its own for that."""


class TlsSocket:
    """What a `Connection` sends and receives plain bytes by. It is told of it once the handshake is through.

    Args:
        connection: who uses it.
        context: which certificates are trusted; an end without a goodbye is from now on an error to it, which Python
            3.11 may have switched off.
        host: the name that the server has to prove.
    """

    __slots__ = (
        "_connection",
        "_ended",
        "_incoming",
        "_outgoing",
        "_paused",
        "_ready",
        "_tls",
        "_transport",
    )

    def __init__(self, connection: Connection, *, context: ssl.SSLContext, host: str) -> None:
        self._connection = connection
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._paused = self._ended = False

    async def shake_hands(self) -> None:
        """Return once the server has proved its name; whatever ends the wait before ends the connection.

        Raises:
            OSError: it did not, or is no TLS server.
        """
        try:
            await self._ready
        except BaseException:
            self.abort()
            raise

    def write(self, data: bytes | memoryview) -> None:
        """Send plain bytes."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._tls.write(rest) :]
        except ssl.SSLError as error:  # a server of TLS 1.2 that wants to shake hands again is turned away too
            self._end(error)
            return
        self._flush()

    def is_closing(self) -> bool:
        """Say whether it is of no use any more."""
        return self._ended or self._transport is None or self._transport.is_closing()

    def get_extra_info(self, name: str) -> object:
        """Return what the transport below knows."""
        return None if self._transport is None else self._transport.get_extra_info(name)

    def abort(self) -> None:
        """Close the socket at once."""
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        """Deliver nothing, and let the engine wait."""
        self._paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Deliver again, beginning with what was held back."""
        self._paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        asyncio.get_running_loop().call_soon(self._deliver)

    def opened(self, transport: asyncio.Transport) -> None:
        """The socket stands: begin the handshake."""
        self._transport = transport
        self._advance()

    def received(self, data: memoryview) -> None:
        """Bytes were read."""
        self._incoming.write(data)
        self._advance()

    def received_end(self) -> None:
        """The server sends no more. The socket stays until the last bytes are delivered."""
        self._incoming.write_eof()
        self._advance()

    def lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        self._transport = None
        self._end(error)

    def _advance(self) -> None:
        if self._ready.done():
            self._deliver()
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # tells the server why
            self._end(error)
        else:
            self._flush()
            self._connection.connection_made(cast("asyncio.BaseTransport", self))
            self._ready.set_result(None)
            self._deliver()

    def _deliver(self) -> None:
        """Hand on what has arrived, unless the reader pauses."""
        try:
            while not self._paused and not self._ended:
                room = self._connection.get_buffer(-1)
                data = self._tls.read(len(room))
                if not data:
                    self._end(None)
                    return
                room[: len(data)] = data
                self._connection.buffer_updated(len(data))
        except ssl.SSLWantReadError:
            self._flush()  # a change of keys may want an answer
        except ssl.SSLError as error:
            self._end(error)

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data and self._transport is not None:
            self._transport.write(data)

    def _end(self, error: Exception | None) -> None:
        """Nothing more can be had: tell who waits, once."""
        if self._ended:
            return
        self._ended = True
        is_ragged = isinstance(error, ssl.SSLEOFError) or getattr(error, "reason", "") == _UNEXPECTED_END
        if self._ready.done():
            self._connection.connection_lost(ssl.SSLEOFError(ssl.SSL_ERROR_EOF, _RAGGED) if is_ragged else error)
        else:
            if error is None or is_ragged or isinstance(error, ssl.SSLZeroReturnError):
                error = ConnectionResetError("it closed the connection during TLS's handshake")
            self._ready.set_exception(error)
            self._ready.exception()  # whoever gave up waiting has no use for it
        if self._transport is not None:
            self._transport.close()


class TlsProtocol(asyncio.BufferedProtocol):
    """The side of a `TlsSocket` that the event loop calls.

    `buffer` is where the plain socket is read into. Nothing stays there, so all connections of a loop may share it, but
    it must not be the one that their `Connection`s read into.
    """

    __slots__ = ("_buffer", "_connection", "secured")

    def __init__(self, secured: TlsSocket, connection: Connection, *, buffer: memoryview) -> None:
        self.secured = secured
        self._connection = connection
        self._buffer = buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Event loop callback."""
        self.secured.opened(cast("asyncio.Transport", transport))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Event loop callback."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Event loop callback."""
        self.secured.received(self._buffer[:nbytes])

    def eof_received(self) -> bool:
        """Event loop callback: keep the socket open, what was held back is still to be delivered."""
        self.secured.received_end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Event loop callback."""
        self.secured.lost(exc)

    def pause_writing(self) -> None:
        """Event loop callback."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Event loop callback."""
        self._connection.resume_writing()
