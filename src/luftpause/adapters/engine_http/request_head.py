"""Writes the head of a request to an engine, and makes sure that no value can add a line to it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from luftpause.adapters.engine_http.origin import Origin
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineRequest, EngineUnreachableError, Header

HEADS_MAX: Final = 256
"""So many heads are remembered at most; only of headers that nobody can change."""
HEAD_BYTES_MAX: Final = 4096
"""A longer one is written anew each time."""

_Said: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes]
"""All of a head but the client's headers: host, base path, key, method and path."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A head that was written, up to its length, for these very headers."""

    headers: Sequence[Header]
    said: _Said
    head: bytes


class RequestHeads:
    """Writes heads. Remembers what was written for headers that come again as the same object."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes], _Written] = {}

    def write(self, origin: Origin, endpoint: Endpoint, request: EngineRequest) -> bytes:
        """Return a request's head.

        Raises:
            EngineUnreachableError: the endpoint's own key is not there, or a header would break the head.
        """
        key = _api_key(endpoint.api_key_env) if endpoint.api_key_env else b""
        said = origin.host_header, origin.base_path, key, request.method, request.path
        headers = request.headers
        known = self._known.get((id(headers), origin.host_header))
        if known is None or known.headers is not headers or known.said != said:
            known = _Written(headers, said, _head(said, headers))
            if len(known.head) <= HEAD_BYTES_MAX and isinstance(headers, tuple):
                if len(self._known) >= HEADS_MAX:
                    self._known.clear()
                self._known[id(headers), origin.host_header] = known
        head = known.head
        if request.body or request.method not in (b"GET", b"HEAD"):
            return b"%bcontent-length: %d\r\naccept-encoding: identity\r\n\r\n" % (head, len(request.body))
        return head + b"accept-encoding: identity\r\n\r\n"


def _head(said: _Said, headers: Sequence[Header]) -> bytes:
    host, base_path, key, method, path = said
    lines = [b"%b %b%b HTTP/1.1" % (method, base_path, path), b"host: " + host, *map(b": ".join, headers)]
    if key:
        lines.append(b"authorization: Bearer " + key)
    lines.append(b"")
    head = b"\r\n".join(lines)
    if len(head) - len(head.translate(None, b"\r\n\0")) != 2 * (len(lines) - 1):
        raise EngineUnreachableError("not sent: a header of the request holds a line break or NUL")
    return head


def _api_key(variable: str) -> bytes:
    """Return the key that the environment holds, read anew each time so that it can be changed."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise EngineUnreachableError(f"not sent: the environment variable {variable} that holds its key is not set")
    if not (value.isascii() and value.isprintable()):
        cause = "holds what no key may hold, such as a line break"
        raise EngineUnreachableError(f"not sent: the environment variable {variable} {cause}")
    return value.encode("ascii")
