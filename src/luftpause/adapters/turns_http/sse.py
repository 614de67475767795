"""Server-sent events out of bytes that may be cut anywhere. Only `data` matters here.

The dataplane's observer may skip an event that is too long, for it only watches. Here a skipped event would be a hole
in a reply that nobody notices, so such a stream is an error instead.
"""

from typing import Final

EVENT_BYTES_MAX: Final = 8 * 1024 * 1024
_DATA: Final = b"data: "


class EventTooLongError(Exception):
    """One event is longer than any reply should be."""


class EventReader:
    """Feed it bytes, get the data of each event that they complete. Comments and other fields are skipped."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that `piece` completes, lines joined by newlines.

        Raises:
            EventTooLongError: an event passed EVENT_BYTES_MAX.
        """
        done: list[bytes] = []
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) + self._size > EVENT_BYTES_MAX:
            raise EventTooLongError(f"an event of more than {EVENT_BYTES_MAX} bytes")
        for ended in lines:
            line = ended.removesuffix(b"\r")
            if line.startswith(_DATA):
                value = line[len(_DATA) :]
                self._data.append(value)
                self._size += len(value)
            elif line:
                self._take_unusual(line)
            else:
                if self._data:
                    done.append(b"\n".join(self._data))
                self._data, self._size = [], 0
        return done

    def _take_unusual(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":  # without the space, or without a value
            self._data.append(value)
            self._size += len(value)
