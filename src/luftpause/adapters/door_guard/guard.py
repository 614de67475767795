"""Refuses ambiguous requests, unknown host names (DNS rebinding), foreign origins (other web pages) and missing tokens.

It wraps any ASGI application, costs a few dictionary look-ups on the way in, and knows nothing of what it guards. Web
pages that may call can read what they are told, refusals included.
"""

import ipaddress
from collections.abc import Awaitable, Sequence
from typing import Final

from luftpause.adapters.door_guard.cross_origin import answer_preflight, is_preflight, let_read
from luftpause.adapters.door_guard.keyring import Keyring, presented_by
from luftpause.adapters.door_guard.request_shape import ambiguity
from luftpause.adapters.http_server.refusal import PLAIN, Refusals
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.ports.asgi import PRINCIPAL_KEY, Application, Receive, Scope, Send, headers_of, runs_eagerly
from luftpause.ports.engines import Header

REMEMBERED_HOSTS_MAX: Final = 256
REMEMBERED_HOST_MAX: Final = 256
"""Bytes of the longest one."""

POLICY_VIOLATION: Final = 1008
"""WebSocket close code for a refused handshake."""

_OPEN: Final = Keyring()


class DoorGuard:
    """Guards an ASGI application.

    Args:
        app: what is guarded. It finds in its scope who comes: `ports.asgi.principal_of`.
        allowed_hosts: host names, with a port (only that one) or without (any). Addresses and localhost always are.
        allowed_origins: web origins that may call, such as "https://chat.example.org"; the door's own always may.
        keyring: the tokens of which every request must present one, but for open paths; an empty one asks for none.
        key_in_query: whether `?key=` may hold the token, as in Gemini's API.
        refusals: how refusals look.
    """

    def __init__(
        self,
        app: Application,
        *,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        keyring: Keyring = _OPEN,
        key_in_query: bool = False,
        refusals: Refusals = PLAIN,
    ) -> None:
        self.runs_eagerly = runs_eagerly(app)
        self._app = app
        self._allowed_hosts = frozenset(_canonical(host) for host in allowed_hosts)
        self._allowed_origins = frozenset(origin.rstrip("/").lower().encode() for origin in allowed_origins)
        self._keyring = keyring
        self._key_in_query = key_in_query
        self._refusals = refusals
        self._good_hosts: set[bytes] = set()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one ASGI scope: what is let in costs no coroutine here."""
        kind = scope["type"]
        if kind != "http" and kind != "websocket":
            return self._app(scope, receive, send)
        headers = headers_of(scope)
        origin = headers.get(b"origin")
        failure = ambiguity(scope, headers) or self._stranger(scope, headers, origin)
        if failure is None and origin is not None and kind == "http" and origin.lower() in self._allowed_origins:
            send = let_read(scope, send, origin)
            if is_preflight(scope["method"], headers):
                return answer_preflight(send, headers)
        if failure is None and self._keyring:
            failure = self._identify(scope, headers)
        if failure is None:
            return self._app(scope, receive, send)
        if kind == "websocket":
            return send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": failure.message[:100]})
        return self._refuse(send, failure, scope)

    def _stranger(self, scope: Scope, headers: dict[bytes, bytes], origin: bytes | None) -> Failure | None:
        """Return why a request is refused that names a host or an origin which this door does not know.

        HTTP/1.0 may come without a host (RFC 9112). No browser speaks that, so nobody's name can have been rebound.
        """
        host = headers.get(b"host", b"")
        needs_host = b"host" in headers or scope["http_version"] != "1.0"
        if host not in self._good_hosts and needs_host and not self._learn_host(host):
            shown = host.decode("ascii", "backslashreplace")[:100]
            return _failure(
                FailureCode.UNKNOWN_HOST,
                f"this door does not answer for the host {shown!r}: use an address, or name the host in allowed_hosts",
            )
        if origin is not None and not self._may_call(origin, host):
            shown = origin.decode("ascii", "backslashreplace")[:100]
            return _failure(
                FailureCode.FORBIDDEN_ORIGIN,
                f"web pages from {shown!r} may not call this door: name that origin in allowed_origins if they should",
            )
        return None

    def _identify(self, scope: Scope, headers: dict[bytes, bytes]) -> Failure | None:
        """Write into the scope who comes; return why a request is refused that presents no good token."""
        if self._keyring.is_open(scope["path"]):
            return None
        query = scope["query_string"] if self._key_in_query else b""
        principal = self._keyring.find(presented_by(headers, query))
        if principal is None:
            return _failure(
                FailureCode.UNAUTHORIZED, "the token is missing or wrong: send it as 'Authorization: Bearer <token>'"
            )
        scope[PRINCIPAL_KEY] = principal
        return None

    async def _refuse(self, send: Send, failure: Failure, scope: Scope) -> None:
        body = self._refusals.body(scope["path"], failure)
        headers: list[Header] = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *self._refusals.headers(scope["headers"]),
        ]
        if failure.code is FailureCode.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        elif failure.code in (FailureCode.BAD_HTTP, FailureCode.HEADERS_TOO_LARGE):
            headers.append((b"connection", b"close"))  # where the next request begins is not sure either
        await send({"type": "http.response.start", "status": failure.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _learn_host(self, host: bytes) -> bool:
        """Return whether the door answers for a host, and remember the good ones."""
        good = _is_address(host) or self._is_allowed(host)
        if good and len(self._good_hosts) < REMEMBERED_HOSTS_MAX and len(host) <= REMEMBERED_HOST_MAX:
            self._good_hosts.add(host)
        return good

    def _is_allowed(self, host: bytes) -> bool:
        text = host.decode("ascii", "backslashreplace").lower()
        return bool(text) and (text in self._allowed_hosts or _canonical(_without_port(text)) in self._allowed_hosts)

    def _may_call(self, origin: bytes, host: bytes) -> bool:
        origin = origin.lower()
        return origin in (b"http://" + host.lower(), b"https://" + host.lower()) or origin in self._allowed_origins


def _failure(code: FailureCode, message: str) -> Failure:
    return Failure(code=code, message=message)


def _without_port(host: str) -> str:
    """Return the name of `name`, `name:port`, `[address]` or `[address]:port`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _canonical(host: str) -> str:
    """Return a configured host as it is compared: lower case, an IPv6 address without brackets."""
    host = host.lower().rstrip(".")
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _is_address(host: bytes) -> bool:
    """Return whether a host is a literal address or this machine's own name: rebinding needs a name of its own."""
    try:
        name = _without_port(host.decode("ascii").lower())
        return name in ("localhost", "ip6-localhost") or bool(ipaddress.ip_address(name))
    except ValueError:
        return False
