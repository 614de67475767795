"""Wall-clock time, for people and journals only: decisions use the event loop's monotonic clock."""

from typing import Protocol


class WallClock(Protocol):
    """The time of day."""

    def utc(self) -> float:
        """Return seconds since the Unix epoch."""
        ...
