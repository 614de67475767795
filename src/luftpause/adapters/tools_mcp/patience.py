"""How long a call of a tool may take: longer, up to a point, where its server says that it gets on."""

from collections.abc import Callable


class Patience:
    """How long a call may still take: `timeout_s` since it was sent or last told of progress, `most_s` in all."""

    def __init__(self, clock: Callable[[], float], timeout_s: float, most_s: float) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._began = clock()
        self._end = self._began + max(most_s, timeout_s)
        self._deadline = self._began + timeout_s

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a sign of progress."""
        self._deadline = min(self._clock() + self._timeout_s, self._end)

    @property
    def granted_s(self) -> float:
        """Seconds that it may take in all, as things stand."""
        return round(self._deadline - self._began, 1)

    @property
    def left_s(self) -> float:
        """Seconds left, none when it took too long."""
        return max(self._deadline - self._clock(), 0.0)
