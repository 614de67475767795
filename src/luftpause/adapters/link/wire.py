"""One TCP connection that carries frames: cuts what arrives, gathers what leaves, and bounds both.

Everything said within one turn of the event loop leaves in one write. It does not know what the frames mean.
"""

import asyncio
import contextlib
import socket
from typing import Final, Protocol, cast

from luftpause.adapters.link.codec import FrameError, FrameReader

CLOSE_S: Final = 1.0
"""How long a closing connection may take to flush before it is cut."""

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 10), ("TCP_KEEPALIVE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""A peer whose machine vanished without a word is noticed after some 25 s; the names differ between systems."""


class Listener(Protocol):
    """Who a wire tells what happened. Calls come from the event loop, one at a time, none after `wire_lost`."""

    def wire_opened(self, wire: "Wire") -> None:
        """The connection stands."""
        ...

    def payload_received(self, payload: bytes) -> None:
        """One whole payload arrived. May raise FrameError, which comes back as `ill_formed`."""
        ...

    def batch_taken(self) -> None:
        """All payloads that arrived together have been handed over."""
        ...

    def ill_formed(self, error: FrameError) -> None:
        """What arrived is no frame. The listener closes the wire."""
        ...

    def wire_lost(self) -> None:
        """The connection is gone, whoever ended it."""
        ...


class Wire(asyncio.Protocol):
    """Frames over one connection.

    Args:
        listener: told of everything that arrives.
        reader: cuts what arrives; its limit bounds one frame.
        unsent_max: bytes that may wait to leave; past it the other side reads too slowly and is cut off.
        patient: stop reading while writes are stuck. Only one end may, or both could wait for each other.
    """

    def __init__(self, listener: Listener, reader: FrameReader, *, unsent_max: int, patient: bool) -> None:
        self._listener = listener
        self._reader = reader
        self._unsent_max = unsent_max
        self._patient = patient
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._stuck = False
        self._closing = False
        self._cut: asyncio.TimerHandle | None = None
        self.overflowed = False
        self.lost: asyncio.Future[None] = self._loop.create_future()
        """Done once the connection is gone."""

    def send(self, frame: bytes) -> None:
        """Queue one encoded frame; it leaves at the end of this turn of the loop. After `close` it goes nowhere."""
        if self._closing:
            return
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(frame)
        self._unsent_bytes += len(frame)
        if self._unsent_bytes > self._unsent_max:
            self.overflowed = True
            self.abort()

    def close(self) -> None:
        """Send what is queued, then close; cut after CLOSE_S."""
        if self._closing or self._transport is None:
            return
        self._stuck = False
        self.flush()
        self._closing = True
        self._transport.close()
        self._cut = self._loop.call_later(CLOSE_S, self._transport.abort)

    def abort(self) -> None:
        """Cut the connection at once; what is queued is dropped."""
        self._closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        if self._transport is not None:
            self._transport.abort()

    def flush(self) -> None:
        """Let what is queued leave now instead of at the end of this turn of the loop."""
        if self._stuck or self._transport is None or not self._unsent:
            return
        together = b"".join(self._unsent)
        self._unsent.clear()
        self._unsent_bytes = 0
        self._transport.write(together)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        # uvloop's transports fit asyncio.Transport without being one, so this cannot be asserted.
        transport = self._transport = cast("asyncio.Transport", transport)
        transport.set_write_buffer_limits(high=256 * 1024)
        _tune(transport.get_extra_info("socket"))
        self._listener.wire_opened(self)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        try:
            for payload in self._reader.feed(data):
                if self._closing:
                    return
                self._listener.payload_received(payload)
        except FrameError as error:
            if not self._closing:
                self._listener.ill_formed(error)
        else:
            self._listener.batch_taken()

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._stuck = True
        if self._patient and self._transport is not None and not self._closing:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._stuck = False
        self.flush()
        if self._patient and self._transport is not None and not self._closing:
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._closing = True
        if self._cut is not None:
            self._cut.cancel()
        self._unsent.clear()
        self._listener.wire_lost()
        self.lost.set_result(None)


def _tune(sock: socket.socket) -> None:
    # A socket that its peer has already reset refuses options; connection_lost follows anyway.
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
