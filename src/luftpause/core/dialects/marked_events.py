"""Finds the events of a stream that are worth reading: those that hold a marker.

What the markers mean is their owner's affair.
"""

from dataclasses import dataclass

from luftpause.core.dialects.event_readers import Events, Reader
from luftpause.core.dialects.sse import data_of, split_events


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that makes an event worth reading.

    Attributes:
        word: as it stands in the event.
        value: what must follow it, one byte, after one space or none; empty: anything.
    """

    word: bytes
    value: bytes = b""


class MarkedEvents(Events):
    """Looks through one stream for these markers."""

    __slots__ = ("_markers",)

    def __init__(self, markers: tuple[Marker, ...]) -> None:
        self._markers = markers

    def tell(self, block: bytes, reader: Reader) -> None:
        """See `Events.tell`."""
        for event in split_events(block):
            if self._is_marked(event):
                reader.take(data_of(event))

    def _is_marked(self, event: bytes) -> bool:
        for marker in self._markers:
            _, found, rest = event.partition(marker.word)
            while found:
                if not marker.value or rest.startswith(marker.value) or rest.startswith(b" " + marker.value):
                    return True
                _, found, rest = rest.partition(marker.word)
        return False
