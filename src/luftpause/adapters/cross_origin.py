"""What lets a web page that may call a door read its answers: the CORS headers, and the answer to a preflight.

Who may call is decided before. Nothing here ever allows cookies: `Access-Control-Allow-Credentials` is never sent.
"""

import re
from typing import Final

from luftpause.ports.asgi import Message, Send
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


def readable(send: Send, origin: bytes) -> Send:
    """Return a `send` whose answers a page from an origin may read, all their headers included."""
    more: list[Header] = [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"origin"),
    ]

    async def send_readable(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [header for header in message.get("headers", ()) if header[0] not in _OURS]
            message = {**message, "headers": [*kept, *more]}
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
