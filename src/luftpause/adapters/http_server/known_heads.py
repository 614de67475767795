"""Heads of requests that were read before: whoever comes again with the same one need not have it parsed again.

From turn to turn an agent's requests differ in their bodies, hence in the content-length of their heads, and often in
nothing else. A head gets in here only once the parser has read it whole, and counts only for a request that has come
whole, so nothing is decided here that the parser has not decided about the same bytes.
"""

from dataclasses import dataclass
from typing import Any, Final

from luftpause.ports.asgi import KEPT_KEY, NAMED_KEY
from luftpause.ports.engines import Header

HEAD_BYTES_MAX: Final = 2048
"""Longer heads are always parsed."""
HEADS_MAX: Final = 128
"""So many are remembered at least, and twice as many at most."""
SHARED_MAX: Final = 1024
"""So many headers, and so many targets, are kept as one object each for all heads that have them."""
_DIGITS_MAX: Final = 9
_ZERO: Final = ord("0")
_NINE: Final = ord("9")
_LENGTH: Final = b"ength: "
"""The end of the name and the colon, as clients write it: the first letters may be small or capital."""
_LENGTH_LINE: Final = b"\r\ncontent-length: "
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH_NAME: Final = b"content-length"


@dataclass(frozen=True, slots=True)
class CutHead:
    """A head whose content-length was taken out.

    Attributes:
        rest: what is left of it: two heads with the same rest are the same but for that number.
        length: its digits.
        size: bytes of the whole head; all that came behind it is the body.
    """

    rest: bytes
    length: bytes
    size: int


@dataclass(frozen=True, slots=True)
class KnownHead:
    """A head that was parsed.

    Attributes:
        before: its bytes up to the content-length's digits.
        after: its bytes from there on, with the empty line.
        parts: what its scope says, as `http_scope.request_parts` returns it, with places for its headers. Other heads
            of the same request line share it.
        kept: what its application keeps of it.
        headers: its headers.
        named: the same by name.
        length_at: which of them the content-length is.
    """

    before: bytes
    after: bytes
    parts: dict[str, Any]
    kept: dict[str, object]
    headers: list[Header]
    named: dict[bytes, bytes]
    length_at: int

    def again(self, data: memoryview) -> CutHead | None:
        """Return the head of a request that has come whole, as `cut_head` does, if it is this one; else None."""
        before, after = self.before, self.after
        start = len(before)
        piece = bytes(data[: start + _DIGITS_MAX + len(after)])
        if not piece.startswith(before):
            return None
        end, length = start, 0
        while end < len(piece) and _ZERO <= piece[end] <= _NINE and end < start + _DIGITS_MAX:
            length = 10 * length + piece[end] - _ZERO
            end += 1
        size = end + len(after)
        if end == start or piece[end:size] != after or size + length != len(data):
            return None
        return CutHead(self.before, piece[start:end], size)

    def parts_for(self, length: bytes) -> dict[str, Any]:
        """Return what the scope of a request says that has this head, but for its content-length."""
        headers, named, parts = self.headers.copy(), self.named.copy(), self.parts.copy()
        headers[self.length_at] = (_LENGTH_NAME, length)
        named[_LENGTH_NAME] = length
        parts["headers"] = headers
        parts[NAMED_KEY] = named
        parts[KEPT_KEY] = self.kept
        return parts


class KnownHeads:
    """All that the connections of one server remember. What was not asked for lately is forgotten.

    Clients of one kind differ in a header or two: the others, and what the request line says, are there once.
    """

    def __init__(self) -> None:
        self._fresh: dict[bytes, KnownHead] = {}
        self._older: dict[bytes, KnownHead] = {}
        self._headers: dict[Header, Header] = {}
        self._parts: dict[tuple[str, bytes], dict[str, Any]] = {}

    def find(self, cut: CutHead) -> KnownHead | None:
        """Return a head that is known, None if it is not."""
        known = self._fresh.get(cut.rest)
        if known is None:
            known = self._older.get(cut.rest)
            if known is not None:
                self._add(cut.rest, known)
        return known

    def learn(self, cut: CutHead, url: bytes, parts: dict[str, Any]) -> KnownHead | None:
        """Remember a head that was parsed, and let its application keep what it makes of it; None: it is too odd.

        Nothing in it may bear on how its body is framed or on what becomes of the connection, but its content-length.
        """
        headers: list[Header] = parts["headers"]
        lengths = [at for at, (name, _) in enumerate(headers) if name == _LENGTH_NAME]
        before, name, after = cut.rest.partition(_LENGTH)
        before += name
        is_cut_there = before[-len(_LENGTH_LINE) :].lower() == _LENGTH_LINE and cut.rest.count(b"\n") == len(headers)
        if not is_cut_there or len(lengths) != 1 or headers[lengths[0]][1] != cut.length:
            return None
        kept: dict[str, object] = {}
        parts[NAMED_KEY], parts[KEPT_KEY] = dict(headers), kept
        headers = [self._shared(header) for header in headers]
        parts = self._shared_parts(url, parts)
        known = KnownHead(before, after + _HEAD_END, parts, kept, headers, dict(headers), lengths[0])
        self._add(cut.rest, known)
        return known

    def _shared(self, header: Header) -> Header:
        """Return the object that all heads have for a header."""
        shared = self._headers
        if len(shared) >= SHARED_MAX:
            shared.clear()
        return shared.setdefault(header, header)

    def _shared_parts(self, url: bytes, parts: dict[str, Any]) -> dict[str, Any]:
        """Return what all heads have for a request line of HTTP/1.1."""
        line = parts["method"], url
        known = self._parts.get(line)
        if known is None:
            if len(self._parts) >= SHARED_MAX:
                self._parts.clear()
            known = self._parts[line] = parts | {"headers": None, NAMED_KEY: None, KEPT_KEY: None}
        return known

    def _add(self, rest: bytes, known: KnownHead) -> None:
        if len(self._fresh) >= HEADS_MAX:
            self._older, self._fresh = self._fresh, {}
        self._fresh[rest] = known


def cut_head(data: memoryview) -> CutHead | None:
    """Return the head of a request that has come whole, and nothing behind it; None of anything else."""
    before, found, after = bytes(data[:HEAD_BYTES_MAX]).partition(_LENGTH)
    if not found:
        return None
    length, found, after = after.partition(b"\r\n")
    if not found or not length.isdigit() or len(length) > _DIGITS_MAX:
        return None
    lines, found, _ = (b"\r\n" + after).partition(_HEAD_END)
    size = len(before) + len(_LENGTH) + len(length) + len(lines) + 4
    if not found or size + int(length) != len(data):
        return None
    return CutHead(before + _LENGTH + lines, length, size)
