"""Finds the events of a stream that say more than the next piece of text: those that hold a marker.

Nearly all events of a stream are alike but for one string in them, the text. One that held no marker is remembered as
what stands before that string and what after it, and an event that is made of the same two is not searched again. What
the markers mean is their owner's affair.
"""

from dataclasses import dataclass
from typing import Final

from luftpause.core.dialects.sse import data_of, split_events

ALIKE_BYTES_MAX: Final = 4096
"""A longer event is not remembered."""
_TRIES: Final = 8
"""So many events of a stream are remembered one after the other. The first one is like no other, so it is not."""
_QUOTE: Final = ord('"')
_STRING_ENDS: Final = (b'"}', b'",')


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that makes an event worth reading.

    Attributes:
        word: as it stands in the event.
        value: what must follow it, one byte, after one space or none; empty: anything.
    """

    word: bytes
    value: bytes = b""


class MarkedEvents:
    """Looks through one stream.

    Args:
        markers: what to look for. If there is a `text`, each of them has either no quote or one whose next byte, if
            the marker goes on behind it, is a colon, but for one that it begins with; and none has `text` in it.
        text: what stands before the string in which plain events differ, its opening quote included; empty for none.
        end: an event that holds a marker and nothing else, by which streams end; empty for none.
    """

    __slots__ = ("_after", "_before", "_block_end", "_end", "_markers", "_text", "_tries")

    def __init__(self, markers: tuple[Marker, ...], text: bytes = b"", end: bytes = b"") -> None:
        self._end = end
        self._markers = markers
        self._text = text
        self._tries = _TRIES
        self._before = b""
        self._after = b""
        self._block_end = b""

    def documents(self, block: bytes) -> list[bytes]:
        """Return the data of a block's events that hold a marker, in order."""
        before = self._before
        if before and _is_made_of(block, before, self._block_end):
            return []
        documents: list[bytes] = []
        for event in split_events(block):
            if before and _is_made_of(event, before, self._after):
                continue
            if event == self._end or self._is_marked(event):
                documents.append(data_of(event))
            elif self._text and self._tries:
                self._remember(event)
                before = self._before
        return documents

    def _is_marked(self, event: bytes) -> bool:
        for marker in self._markers:
            _, found, rest = event.partition(marker.word)
            while found:
                if not marker.value or rest.startswith(marker.value) or rest.startswith(b" " + marker.value):
                    return True
                _, found, rest = rest.partition(marker.word)
        return False

    def _remember(self, event: bytes) -> None:
        """Note what an event without a marker is made of, if no other text can make a marker of it.

        A string without quotes cannot hold the inside of a marker together with what stands before it, which ends in
        `text`; and with what stands after it only where that goes on with a colon.
        """
        self._tries -= 1
        if self._tries == _TRIES - 1 or len(event) > ALIKE_BYTES_MAX:
            return
        at = event.find(self._text)
        start = at + len(self._text)
        end = event.find(b'"', start)
        if at >= 0 and event.startswith(_STRING_ENDS, max(end, start)):
            self._before, self._after = event[:start], event[end:]
            self._block_end = self._after + b"\n\n"


def _is_made_of(event: bytes, before: bytes, after: bytes) -> bool:
    """Say whether an event is these two with a string between them that has no quote in it."""
    inside, end = len(before), len(event) - len(after)
    return end >= inside and event.startswith(before) and event.endswith(after) and _QUOTE not in event[inside:end]
