"""Refuses unknown host names (DNS rebinding), foreign origins (other web pages) and, where one is set, a missing token.

It wraps any ASGI application, costs a few dictionary look-ups on the way in, and knows nothing of what it guards.
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final

from luftpause.adapters.http_protocol import RefusalHeaders
from luftpause.adapters.http_server import no_headers
from luftpause.core.dialects.failures import Failure, FailureCode, openai_error
from luftpause.ports.asgi import Application, Receive, Scope, Send
from luftpause.ports.engines import Header

REMEMBERED_HOSTS_MAX: Final = 256
REMEMBERED_HOST_MAX: Final = 256
"""Bytes of the longest one."""

POLICY_VIOLATION: Final = 1008
"""WebSocket close code for a refused handshake."""


class DoorGuard:
    """Guards an ASGI application.

    Args:
        app: what is guarded.
        allowed_hosts: host names, with a port (only that one) or without (any). Addresses and localhost always are.
        allowed_origins: web origins that may call, such as "https://chat.example.org"; the door's own always may.
        token: what every request but `/health` must present; "" asks for none.
        refusal_headers: headers that refusals carry.
    """

    def __init__(
        self,
        app: Application,
        *,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        token: str = "",
        refusal_headers: RefusalHeaders = no_headers,
    ) -> None:
        self._app = app
        self._allowed_hosts = frozenset(_canonical(host) for host in allowed_hosts)
        self._allowed_origins = frozenset(origin.rstrip("/").lower().encode() for origin in allowed_origins)
        self._token = token.encode()
        self._refusal_headers = refusal_headers
        self._good_hosts: set[bytes] = set()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one ASGI scope: what is let in costs no coroutine here."""
        kind = scope["type"]
        if kind == "http" or kind == "websocket":
            failure = self._check(scope["path"], dict(scope["headers"]))
            if failure is not None:
                if kind == "websocket":
                    return send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": failure.message[:100]})
                return _refuse(send, failure, self._refusal_headers(scope["headers"]))
        return self._app(scope, receive, send)

    def _check(self, path: str, headers: dict[bytes, bytes]) -> Failure | None:
        host = headers.get(b"host", b"")
        if host not in self._good_hosts and not self._learn_host(host):
            shown = host.decode("ascii", "backslashreplace")[:100]
            return _failure(
                FailureCode.UNKNOWN_HOST,
                f"this door does not answer for the host {shown!r}: use an address, or name the host in allowed_hosts",
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._may_call(origin, host):
            shown = origin.decode("ascii", "backslashreplace")[:100]
            return _failure(FailureCode.FORBIDDEN_ORIGIN, f"web pages from {shown!r} may not call this door")
        if self._token and path != "/health" and not self._presents_token(headers):
            return _failure(
                FailureCode.UNAUTHORIZED, "the token is missing or wrong: send it as 'Authorization: Bearer <token>'"
            )
        return None

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

    def _presents_token(self, headers: dict[bytes, bytes]) -> bool:
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        presented = (
            bearer.strip() if scheme.lower() == b"bearer" else b"",
            headers.get(b"x-api-key", b""),
            headers.get(b"x-goog-api-key", b""),
        )
        return any(hmac.compare_digest(candidate, self._token) for candidate in presented)


def _failure(code: FailureCode, message: str) -> Failure:
    return Failure(code=code, message=message)


async def _refuse(send: Send, failure: Failure, more: Iterable[Header]) -> None:
    body = openai_error(failure)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *more]
    if failure.code is FailureCode.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": failure.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
