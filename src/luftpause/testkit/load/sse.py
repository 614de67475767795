"""Server-sent events, read as they come: bytes in, the data of complete events out. Pure."""

EVENT_BYTES_MAX = 1024 * 1024


class EventTooLongError(Exception):
    """An event that does not end."""


class SseReader:
    """Feed it bytes cut anywhere."""

    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Return the data of each event that is now complete, its lines joined; comments and names are dropped.

        Raises:
            EventTooLongError: an event exceeds EVENT_BYTES_MAX.
        """
        *lines, self._line = (self._line + data).split(b"\n")
        events = []
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data = []
        if len(self._line) + sum(map(len, self._data)) > EVENT_BYTES_MAX:
            raise EventTooLongError(f"an event exceeds {EVENT_BYTES_MAX} bytes")
        return events
