"""The ASGI interface between a door's server and its application, as types, and what our server offers beyond it.

ASGI's scopes and messages are open dictionaries by its specification, hence the `Any`.
"""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from luftpause.core.model.principals import ANONYMOUS, Principal
from luftpause.ports.engines import Header

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LINE_EXTENSION: Final = "luftpause.http"
"""Key in `scope["extensions"]` of a dictionary whose `"line"` is the request's `Line`. Other servers lack it."""


PRINCIPAL_KEY: Final = "luftpause.principal"
"""Key in a scope of the `Principal` whose token its request presented; absent where none is asked for."""


NAMED_KEY: Final = "luftpause.headers"
"""Key in a scope of its headers by name; see `headers_of`."""

KEPT_KEY: Final = "luftpause.kept"
"""Key in a scope of what its application wants to keep of the request's head, its content-length apart.

It is handed out again with each request that has the same head; absent where no more such requests are looked out for.
"""


def runs_eagerly(app: object) -> bool:
    """Say whether an application may begin within the callback that read its request, in a task that is not asyncio's.

    It says so itself. One that is built on a library which keeps books on its tasks must not.
    """
    return bool(getattr(app, "runs_eagerly", False))


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return a request's headers by name, of repeated ones the last. They are shared by all: do not change them."""
    named: dict[bytes, bytes] | None = scope.get(NAMED_KEY)
    if named is None:
        named = scope[NAMED_KEY] = dict(scope["headers"])
    return named


def kept_of(scope: Scope) -> dict[str, object] | None:
    """Return where an application may keep what it makes of the request's head, None where nowhere."""
    kept: dict[str, object] | None = scope.get(KEPT_KEY)
    return kept


def principal_of(scope: Scope) -> Principal:
    """Return who makes a request."""
    principal: Principal = scope.get(PRINCIPAL_KEY, ANONYMOUS)
    return principal


class Running(Protocol):
    """What runs an application: it can be cancelled, as an `asyncio.Task` can."""

    def cancel(self) -> bool:
        """Raise CancelledError where the application waits. Return False if it has ended."""
        ...

    def cancelling(self) -> int:
        """Return how often it was cancelled, less how often that was taken back."""
        ...

    def uncancel(self) -> int:
        """Take one cancellation back; return how many are left."""
        ...


class Answering(Protocol):
    """What answers a client and wants to know of its leaving."""

    def client_leaves(self, task: Running) -> None:
        """The client left or has to. `task` is the application's that answers it."""
        ...


class ClientLeftError(Exception):
    """The client left before its request was whole: nobody is there to be answered."""


class BodyTooLongError(Exception):
    """The request's body exceeds what its application takes."""


class Line(Protocol):
    """The line to the client of one request, for applications that cannot afford ASGI's messages.

    What is sent after the client left is dropped. An answer that breaks HTTP's rules is a RuntimeError.
    """

    @property
    def left(self) -> bool:
        """Whether the client is gone."""
        ...

    def body_here(self, limit: int) -> bytes | None:
        """Return what `body` would, if the request has arrived whole; None if that would wait.

        Raises:
            BodyTooLongError: see `body`.
            ClientLeftError: see `body`.
        """
        ...

    async def body(self, limit: int) -> bytes:
        """Return the whole body. Ask once, and instead of `receive`.

        Raises:
            BodyTooLongError: it is longer than `limit` bytes. No more of it is read before the answer.
            ClientLeftError: the client left.
        """
        ...

    def on_leave(self, told: Answering | None) -> None:
        """Set who is told, once, should the client leave before its answer is whole; None: nothing.

        Or should the server close: then the client has not `left`, and there is a moment for a last word to it.
        """
        ...

    def begin(self, status: int, headers: Sequence[Header]) -> None:
        """Send the head of the answer. Names are in lower case."""
        ...

    def write(self, data: bytes) -> bool:
        """Send a piece of the body. Return whether the client takes more now: if not, await `room` before the next."""
        ...

    def end(self, data: bytes) -> None:
        """Send the last piece, which may be empty, and the end."""
        ...

    async def room(self) -> None:
        """Return when the client takes more, at once if it does now."""
        ...

    def cut(self) -> None:
        """End the answer as broken: what was sent goes out, then the connection closes without the final chunk."""
        ...
