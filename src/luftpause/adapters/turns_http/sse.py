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

    def end(self) -> list[bytes]:
        """Return what the end of the stream completes: nothing, for an event ends with an empty line."""
        return []


class WholeReader:
    """The same for an answer that is no stream: all of it is the data of one event."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._bytes = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Keep a piece.

        Raises:
            EventTooLongError: there are more than EVENT_BYTES_MAX by now.
        """
        self._pieces.append(piece)
        self._bytes += len(piece)
        if self._bytes > EVENT_BYTES_MAX:
            raise EventTooLongError(f"an answer of more than {EVENT_BYTES_MAX} bytes")
        return []

    def end(self) -> list[bytes]:
        """Return the whole."""
        return [b"".join(self._pieces)]
