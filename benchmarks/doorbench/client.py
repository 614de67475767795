"""One keep-alive connection of the raw load client: bytes out, one parsed answer in, three instants noted.

Knows nothing of schedules; `load` and `streams` decide what is sent when.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import httptools

Address = tuple[str, int]


@dataclass(slots=True)
class Exchange:
    """One request and its answer; instants are monotonic ns, 0 until they happen.

    Attributes:
        due_ns: when it should have been sent (when it was sent, in a closed loop).
        first_ns: first byte of the answer's body.
        body_bytes: bytes of the answer's body so far.
        status: HTTP status; 0 when the connection was lost first.
    """

    due_ns: int
    sent_ns: int = 0
    first_ns: int = 0
    end_ns: int = 0
    body_bytes: int = 0
    status: int = 0

    @property
    def complete(self) -> bool:
        """Whether a whole 200 answer arrived."""
        return self.status == 200 and self.end_ns > 0


class ClientConnection(asyncio.Protocol):
    """A connection that carries one exchange at a time.

    Args:
        on_end: called with the exchange once it is complete or its connection is lost.
        on_bytes: called with the number of body bytes of each piece, and on the first piece of each exchange.
    """

    def __init__(
        self,
        on_end: Callable[["ClientConnection", Exchange], None],
        on_bytes: Callable[["ClientConnection", int], None] | None = None,
    ) -> None:
        self._on_end = on_end
        self._on_bytes = on_bytes
        self._parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport | None = None
        self.exchange: Exchange | None = None
        self.sent = 0

    @property
    def usable(self) -> bool:
        """Whether a request can be sent now."""
        return self.transport is not None and not self.transport.is_closing() and self.exchange is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        """End a running exchange without its answer."""
        self.transport = None
        self._finish(status=0)

    def send(self, request: bytes, due_ns: int = 0) -> Exchange:
        """Send a request and return the exchange that its answer will fill."""
        assert self.transport is not None
        now = time.monotonic_ns()
        self.exchange = Exchange(due_ns or now, sent_ns=now)
        self.sent += 1
        self.transport.write(request)
        return self.exchange

    def data_received(self, data: bytes) -> None:
        """Feed the parser; an answer that it refuses ends the connection."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            raise  # a fault of ours, not of the bytes
        except httptools.HttpParserError:
            if self.transport is not None:
                self.transport.abort()

    def on_body(self, body: bytes) -> None:
        """Count, and note the first byte."""
        exchange = self.exchange
        if exchange is None:
            return
        if exchange.first_ns == 0:
            exchange.first_ns = time.monotonic_ns()
        exchange.body_bytes += len(body)
        if self._on_bytes is not None:
            self._on_bytes(self, len(body))

    def on_message_complete(self) -> None:
        """End the exchange with the answer's status."""
        keep = self._parser.should_keep_alive()
        status = self._parser.get_status_code()
        if not keep and self.transport is not None:
            self.transport.close()
            self.transport = None
        self._finish(status=status)

    def _finish(self, *, status: int) -> None:
        exchange, self.exchange = self.exchange, None
        if exchange is None:
            return
        exchange.end_ns = time.monotonic_ns()
        exchange.status = status
        self._on_end(self, exchange)


async def connect(
    address: Address,
    on_end: Callable[[ClientConnection, Exchange], None],
    on_bytes: Callable[[ClientConnection, int], None] | None = None,
) -> ClientConnection:
    """Open a connection.

    Raises:
        OSError: nobody listens there.
    """
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(partial(ClientConnection, on_end, on_bytes), *address)
    return connection
