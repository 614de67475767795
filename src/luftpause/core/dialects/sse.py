"""Cuts a stream of server-sent events into whole events, whatever pieces it arrives in.

As the standard has it, lines end with LF, CRLF or CR, and one byte order mark before the first is none of them: what is
given out has LF alone and no such mark. It does not know what the events mean. An event longer than the limit is
skipped, so an endless line costs bounded memory.
"""

from typing import Final

EVENT_STREAM: Final = b"text/event-stream"
"""The content type."""

EVENT_BYTES_MAX: Final = 256 * 1024
"""Longest event that is looked at, bytes without its final blank line."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BLANK_LINE: Final = b"\n\n"
_CR: Final = ord("\r")
_LF: Final = ord("\n")


class EventCutter:
    """Collects pieces and gives out blocks of whole events.

    Attributes:
        skipped: an event was longer than `bytes_max`.
    """

    __slots__ = ("_begun", "_bytes_max", "_may_go_on", "_rest", "_skipping", "skipped")

    def __init__(self, bytes_max: int = EVENT_BYTES_MAX) -> None:
        self.skipped = False
        self._bytes_max = bytes_max
        self._rest = bytearray()
        self._skipping = False
        self._begun: bytes | None = b""  # of a byte order mark; None once that cannot come any more
        self._may_go_on = True  # the next piece: a byte order mark, or the end of a line

    def feed(self, data: bytes) -> bytes:
        """Return all events that this piece completes, in order; b"" when it completes none."""
        # To look for a byte by its number is much faster: in CPython 3.11 `in` with bytes raises and drops an error
        # before it looks.
        if self._may_go_on or _CR in data:
            data = self._plain(data)
        if self._rest or self._skipping:
            return self._continue(data)
        return self._cut(data)

    def rest(self) -> bytes:
        """Return what came after the last whole event: an engine may forget the final blank line."""
        return b"" if self._skipping else bytes(self._rest)

    def _plain(self, data: bytes) -> bytes:
        """Return a piece with LF for each end of a line, and without a byte order mark, which may come in pieces."""
        if not data:
            return data
        if self._begun is not None:
            if self._begun:
                data = self._begun + data
            if len(data) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(data):
                self._begun = data
                return b""
            self._begun = None
            if data.startswith(_BYTE_ORDER_MARK):
                data = data[len(_BYTE_ORDER_MARK) :]
        elif self._may_go_on and data[0] == _LF:
            data = data[1:]  # the line has ended with the CR before it
        self._may_go_on = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if _CR in data else data

    def _cut(self, data: bytes) -> bytes:
        if data.endswith(_BLANK_LINE):
            return data
        end = _last_end(data, 0)
        self._keep(data[end:])
        return data[:end]

    def _continue(self, data: bytes) -> bytes:
        rest = self._rest
        overlap = max(0, len(rest) - 1)
        rest += data
        if self._skipping:
            end = rest.find(_BLANK_LINE, overlap)
            if end < 0:
                del rest[:-1]
                return b""
            after = bytes(rest[end + 2 :])
            self._skipping = False
            self._rest = bytearray()
            return self._cut(after) if after else b""
        end = _last_end(rest, overlap)
        block = bytes(rest[:end])
        self._rest = bytearray()
        self._keep(bytes(rest[end:]) if end else rest)
        return block

    def _keep(self, rest: bytes | bytearray) -> None:
        """Keep an unfinished event. Newlines before it are further blank lines and mean nothing."""
        if rest[:1] == b"\n":
            rest = rest.lstrip(b"\n")
        if len(rest) > self._bytes_max + 1:  # it may be whole but for a blank line
            self._skipping = self.skipped = True
            rest = rest[-1:]
        self._rest = rest if isinstance(rest, bytearray) else bytearray(rest)


def split_events(block: bytes, bytes_max: int = EVENT_BYTES_MAX) -> list[bytes]:
    """Return the events of a block without their blank lines; empty and over-long ones are left out."""
    found: list[bytes] = []
    for event in block.split(_BLANK_LINE):
        if event and (event[0] == _LF or event[-1] == _LF):
            event = event.strip(b"\n")
        if 0 < len(event) <= bytes_max:
            found.append(event)
    return found


def data_of(event: bytes) -> bytes:
    """Return the event's data: the values of its `data` fields, joined by LF where there are several."""
    if event.startswith(b"data:") and _LF not in event:
        return event[6:] if event.startswith(b"data: ") else event[5:]
    lines = event.split(b"\n")
    return b"\n".join([line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")])


def _last_end(data: bytes | bytearray, start: int) -> int:
    """Return the index after the last blank line, 0 when there is none."""
    found = data.rfind(_BLANK_LINE, start)
    return found + 2 if found >= 0 else 0
