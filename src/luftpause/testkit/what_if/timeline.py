"""One time line for a log whose scheduler was restarted: each of its lives has a clock of its own."""

from datetime import datetime
from typing import Final

from luftpause.adapters.event_log.lines import Segment

SKEW_S_MAX: Final = 2.0
"""A segment's wall-clock time is whole seconds, and a little late: so much says nothing."""


class Timeline:
    """Tell it of each segment; `at` then turns instants of the log into instants of one line that never goes back."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._last = 0.0
        self._segment: tuple[float, float] | None = None

    def begin(self, segment: Segment) -> None:
        """Go over to a segment's clock, which may be the same one. The first segment begins the line, at 0."""
        wall = _seconds(segment.utc)
        if self._segment is None:
            self._offset = -segment.now
        else:
            past_at, past_wall = self._segment
            expected = past_at + (wall - past_wall)
            here = segment.now + self._offset
            if here < self._last or abs(here - expected) > SKEW_S_MAX:
                self._offset = max(expected, self._last) - segment.now
        self._segment = self.at(segment.now), wall

    def at(self, now: float) -> float:
        """Return when that was."""
        self._last = max(self._last, now + self._offset)
        return self._last


def _seconds(utc: str) -> float:
    """Return a wall-clock time as seconds; 0 when it is none."""
    try:
        return datetime.fromisoformat(utc).timestamp()
    except ValueError:
        return 0.0
