"""Reading an event log line by line, over what the end of a process cut short. Knows no file."""

from collections.abc import Iterable, Iterator

from luftpause.adapters.event_log.lines import End, Entry, Line, LineError, Segment, line_in, sum_in


class UnreadableError(Exception):
    """The log says nothing that can be used from here on. Its text is one line."""


class Reading:
    """Yields each line with its number, from 1 on, but for ends.

    A line may be torn only where a process ended: before a segment, or at the end of the log.

    Attributes:
        torn: lines that were cut short so far.
        open: segments so far that nothing says the end of: their process was killed, or the log was cut.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.torn = 0
        self.open = 0

    def __iter__(self) -> Iterator[tuple[int, Line]]:
        """Read.

        Raises:
            UnreadableError: a line in the middle is none, a line is not as it was written, or there is no segment.
        """
        total = segments = 0
        for number, text, line in self._whole():
            total = _proved(number, text, 0 if isinstance(line, Segment) else total)
            if isinstance(line, Segment):
                segments += 1
                self.open += 1
            elif not isinstance(line, Entry):
                self.open -= 1
            if not isinstance(line, End):
                yield number, line
        if not segments:
            raise UnreadableError("no segment: this is no event log, or one without its beginning")

    def _whole(self) -> Iterator[tuple[int, bytes, Line | End]]:
        """Yield the lines that were not torn, each as text and as what it says."""
        torn: tuple[int, LineError] | None = None
        for number, text in enumerate(self._lines, 1):
            if not text.strip():
                continue
            try:
                line = line_in(text)
            except LineError as error:
                if torn is not None:
                    raise unreadable(*torn) from error
                torn = number, error
                continue
            if torn is not None:
                if not isinstance(line, Segment):
                    raise unreadable(*torn)
                self.torn, torn = self.torn + 1, None
            yield number, text, line
        if torn is not None:
            self.torn += 1


def _proved(number: int, text: bytes, before: int) -> int:
    """Return the sum of a line that is as it was written."""
    try:
        return sum_in(text, before)
    except LineError as error:
        raise unreadable(number, error) from error


def unreadable(number: int, error: LineError) -> UnreadableError:
    """Return what a line's error means for its log."""
    return UnreadableError(f"line {number}: {error}")
