"""Cuts a stream of server-sent events into whole events, whatever pieces it arrives in.

Lines end with LF or CRLF (no engine sends lone CRs). It does not know what the events mean and never alters
what it is fed. An event longer than the limit is skipped, so an endless line costs bounded memory.
"""

import re
from typing import Final

EVENT_STREAM: Final = b"text/event-stream"
"""The content type."""

EVENT_BYTES_MAX: Final = 256 * 1024
"""Longest event that is looked at, bytes without its final blank line."""

_TERMINATOR_MAX: Final = 3  # what a yet unfinished blank line can add: CR LF CR
_NEWLINES: Final = b"\r\n"
_PRINTABLE: Final = 0x20  # from here on
CR: Final = ord("\r")
LF: Final = ord("\n")
_BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n")


class EventCutter:
    """Collects pieces and gives out blocks of whole events.

    Attributes:
        skipped: an event was longer than `bytes_max`.
    """

    __slots__ = ("_bytes_max", "_rest", "_skipping", "skipped")

    def __init__(self, bytes_max: int = EVENT_BYTES_MAX) -> None:
        self.skipped = False
        self._bytes_max = bytes_max
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> bytes:
        """Return all events that this piece completes, raw and in order; b"" when it completes none."""
        if self._rest or self._skipping:
            return self._continue(data)
        if data.endswith(b"\n\n"):
            return data
        end = _last_end(data, 0)
        self._keep(data[end:])
        return data[:end]

    def rest(self) -> bytes:
        """Return what came after the last whole event: an engine may forget the final blank line."""
        return b"" if self._skipping else bytes(self._rest)

    def _continue(self, data: bytes) -> bytes:
        rest = self._rest
        overlap = max(0, len(rest) - _TERMINATOR_MAX)
        rest += data
        if self._skipping:
            found = _BLANK_LINE.search(rest, overlap)
            if found is None:
                del rest[:-_TERMINATOR_MAX]
                return b""
            after = bytes(rest[found.end() :])
            self._skipping = False
            self._rest = bytearray()
            return self.feed(after) if after else b""
        end = _last_end(rest, overlap)
        block = bytes(rest[:end])
        self._rest = bytearray()
        self._keep(bytes(rest[end:]) if end else rest)
        return block

    def _keep(self, rest: bytes | bytearray) -> None:
        """Keep an unfinished event. Newlines before it are further blank lines and mean nothing."""
        if rest[:1] in (b"\r", b"\n"):
            rest = rest.lstrip(_NEWLINES)
        if len(rest) > self._bytes_max + _TERMINATOR_MAX:
            self._skipping = self.skipped = True
            rest = rest[-_TERMINATOR_MAX:]
        self._rest = rest if isinstance(rest, bytearray) else bytearray(rest)


def split_events(block: bytes, bytes_max: int = EVENT_BYTES_MAX) -> list[bytes]:
    """Return the events of a block without their blank lines; empty and over-long ones are left out."""
    # The plain split is much faster. To look for a byte by its number is, too: in CPython 3.11 `find` takes its
    # arguments apart at length, and `in` with bytes raises and drops an error before it looks.
    events = _BLANK_LINE.split(block) if CR in block else block.split(b"\n\n")
    found: list[bytes] = []
    for event in events:
        if event and (event[0] < _PRINTABLE or event[-1] < _PRINTABLE):
            event = event.strip(_NEWLINES)
        if 0 < len(event) <= bytes_max:
            found.append(event)
    return found


def data_of(event: bytes) -> bytes:
    """Return the event's data: the values of its `data` fields, joined by LF where there are several."""
    if event.startswith(b"data:") and LF not in event:
        return event[6:] if event.startswith(b"data: ") else event[5:]
    values: list[bytes] = []
    for line in event.split(b"\n"):
        if line.startswith(b"data:"):
            value = line[5:].removesuffix(b"\r")
            values.append(value.removeprefix(b" "))
    return b"\n".join(values)


def _last_end(data: bytes | bytearray, start: int) -> int:
    """Return the index after the last blank line, 0 when there is none."""
    plain, with_cr = data.rfind(b"\n\n", start), data.rfind(b"\n\r\n", start)
    return max(plain + 2 if plain >= 0 else 0, with_cr + 3 if with_cr >= 0 else 0)
