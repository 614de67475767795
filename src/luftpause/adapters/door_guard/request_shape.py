"""Which requests could be read in two ways, so that a proxy before us and we would not see the same one.

The parser refuses what is malformed; here stands what it lets pass. Nothing is known of hosts, origins or tokens.
"""

from typing import Final

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.harness import SESSION_HEADERS
from luftpause.ports.asgi import Scope

HEADERS_MAX: Final = 256
"""Header lines of one request; honest clients send a dozen or three."""

_ONCE: Final = (
    b"host",
    b"origin",
    b"authorization",
    b"x-api-key",
    b"x-goog-api-key",
    b"content-type",
    b"transfer-encoding",
    b"x-luftpause-run-id",
    b"x-luftpause-class",
    b"x-luftpause-caller",
    b"x-luftpause-parent",
    b"x-luftpause-parent-call",
    b"x-luftpause-parent-thread",
    b"x-luftpause-approve-tools",
    *SESSION_HEADERS,
)
"""Headers that decide something here: who comes, whose turn it is. Of two, a proxy may go by the other one."""


def ambiguity(scope: Scope, headers: dict[bytes, bytes]) -> Failure | None:
    """Return why a request is refused whose meaning depends on who reads it, None if it is sound.

    `headers` are the scope's, by name.
    """
    lines = scope["headers"]
    if len(lines) > HEADERS_MAX:
        return Failure(code=FailureCode.HEADERS_TOO_LARGE, message=f"there are more than {HEADERS_MAX} headers")
    if len(lines) != len(headers):
        names = [name for name, _ in lines]
        for name in _ONCE:
            if names.count(name) > 1:
                return _bad(f"the header {name.decode()!r} came {names.count(name)} times: send it once")
    version = scope["http_version"]
    if version not in ("1.1", "1.0"):
        return _bad(f"HTTP/{version} is not spoken here, only HTTP/1.1 and HTTP/1.0")
    coding = headers.get(b"transfer-encoding")
    if coding is not None:
        if coding.lower() != b"chunked":
            return _bad("the only transfer-encoding understood here is 'chunked'")
        if version == "1.0":
            return _bad("HTTP/1.0 knows no transfer-encoding")
    return None


def _bad(message: str) -> Failure:
    return Failure(code=FailureCode.BAD_HTTP, message=message)
