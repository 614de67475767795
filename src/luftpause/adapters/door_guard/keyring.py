"""Tells by its token who comes, in a time that does not tell how nearly a wrong one was right."""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes

from luftpause.core.model.principals import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A token, printable ASCII and not empty, and whose it is."""

    token: str = field(repr=False)
    principal: Principal


_KEY_HEADERS: Final = (b"x-api-key", b"x-goog-api-key")


class Keyring:
    """All tokens that open a door. An empty one asks for none."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys = tuple((key.token.encode(), key.principal) for key in keys)
        self._open_paths = frozenset({"/health"})

    def __bool__(self) -> bool:
        """Whether a token is asked for."""
        return bool(self._keys)

    def leaving_open(self, paths: Iterable[str]) -> "Keyring":
        """Return the same with further paths that need no token, because they tell nothing."""
        ring = Keyring()
        ring._keys, ring._open_paths = self._keys, self._open_paths | frozenset(paths)
        return ring

    def is_open(self, path: str) -> bool:
        """Whether a path needs no token."""
        return path in self._open_paths

    def find(self, presented: Sequence[bytes]) -> Principal | None:
        """Return whose token the first good one of those presented is. Every token is compared, whatever was found."""
        found: Principal | None = None
        for candidate in presented:
            for token, principal in self._keys:
                if hmac.compare_digest(candidate, token) and found is None:
                    found = principal
        return found


def presented_by(headers: dict[bytes, bytes], query: bytes = b"") -> list[bytes]:
    """Return the tokens that a request presents, at most four.

    They stand in `Authorization: Bearer`, `x-api-key` and `x-goog-api-key`, or, where a query is given, in its `key`.
    """
    tokens: list[bytes] = []
    authorization = headers.get(b"authorization")
    if authorization:
        scheme, _, bearer = authorization.partition(b" ")
        if scheme.lower() == b"bearer":
            tokens.append(bearer.strip())
    tokens += [headers[name] for name in _KEY_HEADERS if name in headers]
    if query:
        pairs = (part.partition(b"=") for part in query.split(b"&"))
        tokens += [unquote_to_bytes(value) for name, _, value in pairs if name == b"key"][:1]
    return tokens
