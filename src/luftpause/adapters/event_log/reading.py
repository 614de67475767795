"""Reading an event log line by line, over what the end of a process cut short. Knows no file."""

from collections.abc import Iterable, Iterator

from luftpause.adapters.event_log.lines import Line, LineError, Segment, line_in


class UnreadableError(Exception):
    """The log says nothing that can be used from here on. Its text is one line."""


class Reading:
    """Yields each line with its number, from 1 on. `torn` counts those that were cut short so far.

    A line may be torn only where a process ended: before a segment, or at the end of the log.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.torn = 0

    def __iter__(self) -> Iterator[tuple[int, Line]]:
        """Read.

        Raises:
            UnreadableError: a line in the middle is none, or there is no segment at all.
        """
        torn: tuple[int, LineError] | None = None
        segments = 0
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
            segments += isinstance(line, Segment)
            yield number, line
        if torn is not None:
            self.torn += 1
        if not segments:
            raise UnreadableError("no segment: this is no event log, or one without its beginning")


def unreadable(number: int, error: LineError) -> UnreadableError:
    """Return what a line's error means for its log."""
    return UnreadableError(f"line {number}: {error}")
