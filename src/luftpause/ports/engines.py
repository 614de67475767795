"""How a turn reaches an engine, and how its answer comes back as it is produced."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from msgspec import Struct

from luftpause.core.model.replicas import Endpoint

Header = tuple[bytes, bytes]
"""A header's name in lower case, and its value."""


class EngineUnreachableError(Exception):
    """No answer was begun: refused, no route, timed out while connecting, or closed before the first byte."""


class EngineBrokeError(Exception):
    """An answer was begun and ended early or was no valid HTTP."""


class EngineRequest(Struct, frozen=True, kw_only=True):
    """One HTTP request to an engine. The adapter adds host, content-length and the endpoint's own key."""

    method: bytes
    path: bytes
    headers: Sequence[Header]
    body: bytes


class Sink(Protocol):
    """Where an answer is poured."""

    def take_piece(self, data: bytes, is_last: bool) -> bool:
        """Take a piece, empty at most at the end, and whether it is the last; say whether there is room for more."""
        ...

    def room(self) -> Awaitable[None]:
        """Return what is over once there is room for more."""
        ...


class Exchange(Protocol):
    """One answer under way. Always end with `close`, which is free after the last byte and aborts before it."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Sequence[Header]:
        """The answer's headers, in order."""
        ...

    async def read(self) -> bytes:
        """Return the next bytes as the engine sent them, b"" at the end. Reading slowly slows the engine down.

        Raises:
            EngineBrokeError: the answer ended early.
        """
        ...

    def pour(self, sink: Sink) -> Awaitable[None]:
        """Hand the rest of the answer over, each piece as soon as it arrives; await the last.

        Once there is no room for more, nothing is handed over, and the engine has to wait before long, until there is.

        Raises:
            EngineBrokeError: the answer ended early; its last piece was not handed over.
        """
        ...

    def finish(self) -> bool:
        """Take the answer for whole as far as it has come; the connection is not kept. Return False if it was over."""
        ...

    def close(self) -> None:
        """Give the connection back if the answer is complete, else close it at once: the engine stops."""
        ...


class Engines(Protocol):
    """Speaks HTTP to engines; keeps connections."""

    async def send(self, endpoint: Endpoint, request: EngineRequest) -> Exchange:
        """Send a request and return when status and headers have arrived. Cancelling closes the connection.

        Raises:
            EngineUnreachableError: nothing of an answer arrived.
            EngineBrokeError: what arrived was no HTTP answer.
        """
        ...

    async def close(self) -> None:
        """Close every kept connection."""
        ...
