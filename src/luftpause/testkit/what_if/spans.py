"""Weighted spans of time, and questions about a part of it, answered by bisection. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


class Spans:
    """Each span begins, ends, and weighs something meanwhile."""

    def __init__(self, spans: Sequence[tuple[float, float, float]]) -> None:
        begins = sorted((begin, weight) for begin, _, weight in spans)
        self._begins = [begin for begin, _ in begins]
        self._begun = [0.0, *accumulate(weight for _, weight in begins)]
        changes = sorted([(begin, weight) for begin, _, weight in spans] + [(end, -weight) for _, end, weight in spans])
        self._times = [at for at, _ in changes]
        self._levels = [0.0, *accumulate(weight for _, weight in changes)]
        areas = [
            level * (later - earlier)
            for level, earlier, later in zip(self._levels[1:-1], self._times[:-1], self._times[1:], strict=True)
        ]
        self._areas = [0.0, *accumulate(areas)]

    def begun(self, since: float, until: float) -> float:
        """Return the weight of what began after one instant and not after the other."""
        return self._begun[bisect_right(self._begins, until)] - self._begun[bisect_right(self._begins, since)]

    def within(self, since: float, until: float) -> float:
        """Return weight times seconds from one instant to the other."""
        return self._until(until) - self._until(since)

    def most(self) -> float:
        """Return the greatest weight at any time."""
        return max(self._levels)

    def _until(self, at: float) -> float:
        place = bisect_right(self._times, at)
        if not place:
            return 0.0
        return self._areas[place - 1] + self._levels[place] * (at - self._times[place - 1])
