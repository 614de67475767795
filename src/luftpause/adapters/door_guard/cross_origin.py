"""What lets a web page that may call a door read its answers: the CORS headers, and the answer to a preflight.

Who may call is decided before. Nothing here ever allows cookies: `Access-Control-Allow-Credentials` is never sent.
"""

import re
from collections.abc import Sequence
from typing import Final

from luftpause.ports.asgi import LINE_EXTENSION, Line, Message, Scope, Send
from luftpause.ports.engines import Header

METHODS: Final = b"GET, HEAD, POST, DELETE"
REMEMBERED_S: Final = 600
"""How long a browser may remember the answer to a preflight."""
ASKED_BYTES_MAX: Final = 4096

_OURS: Final = (
    b"access-control-allow-credentials",
    b"access-control-allow-origin",
    b"access-control-expose-headers",
)
"""What an engine says of this holds between it and us."""
_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:[ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")
_ASKED_METHOD: Final = b"access-control-request-method"
_ASKED_HEADERS: Final = b"access-control-request-headers"


def is_preflight(method: str, headers: dict[bytes, bytes]) -> bool:
    """Return whether a browser asks before it sends a page's request."""
    return method == "OPTIONS" and _ASKED_METHOD in headers


def let_read(scope: Scope, send: Send, origin: bytes) -> Send:
    """Let a page from an origin read the answer to a request, all its headers included, in whichever way it is sent.

    Return the `send` to answer with; the scope's line, if it has one, is replaced.
    """
    extension = scope.get("extensions", {}).get(LINE_EXTENSION)
    if extension is not None:
        extension["line"] = _ReadableLine(extension["line"], origin)

    async def send_readable(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": _readable(message.get("headers", ()), origin)}
        await send(message)

    return send_readable


async def answer_preflight(send: Send, headers: dict[bytes, bytes]) -> None:
    """Allow what a page that may call asks for: our methods, and the very headers that it names."""
    allowed: list[Header] = [
        (b"access-control-allow-methods", METHODS),
        (b"access-control-max-age", b"%d" % REMEMBERED_S),
    ]
    asked = headers.get(_ASKED_HEADERS, b"")
    if len(asked) <= ASKED_BYTES_MAX and _NAMES.fullmatch(asked):
        allowed.append((b"access-control-allow-headers", asked))
    if headers.get(b"access-control-request-private-network") == b"true":
        allowed.append((b"access-control-allow-private-network", b"true"))
    await send({"type": "http.response.start", "status": 204, "headers": allowed})
    await send({"type": "http.response.body", "body": b""})


def _readable(headers: Sequence[Header], origin: bytes) -> list[Header]:
    return [
        *(header for header in headers if header[0] not in _OURS),
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"origin"),
    ]


class _ReadableLine:
    """A `Line` whose answer a page may read. All but the head goes as it comes."""

    def __init__(self, line: Line, origin: bytes) -> None:
        self._line = line
        self._origin = origin
        self.body = line.body
        self.body_here = line.body_here
        self.on_leave = line.on_leave
        self.write = line.write
        self.end = line.end
        self.room = line.room
        self.cut = line.cut

    @property
    def left(self) -> bool:
        """See Line."""
        return self._line.left

    def begin(self, status: int, headers: Sequence[Header]) -> None:
        """See Line."""
        self._line.begin(status, _readable(headers, self._origin))
