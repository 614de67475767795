"""Server-sent events out of bytes that may be cut anywhere. Only `data` matters here.

The dataplane's observer may skip an event that is too long, for it only watches. Here a skipped event would be a hole
in a reply that nobody notices, so such a stream is an error instead.
"""

from typing import Final

from luftpause.core.dialects.sse import EventCutter, data_of, split_events

EVENT_BYTES_MAX: Final = 8 * 1024 * 1024


class EventTooLongError(Exception):
    """One event is longer than any reply should be."""


class EventReader:
    """Feed it bytes, get the data of each event that they complete. Comments and other fields are skipped."""

    def __init__(self) -> None:
        self._cutter = EventCutter(EVENT_BYTES_MAX)

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that `piece` completes, lines joined by newlines.

        Raises:
            EventTooLongError: an event passed EVENT_BYTES_MAX.
        """
        block = self._cutter.feed(piece)
        if self._cutter.skipped:
            raise EventTooLongError(f"an event of more than {EVENT_BYTES_MAX} bytes")
        return [data for event in split_events(block, len(block)) if (data := data_of(event))]
