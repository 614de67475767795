"""Distributions that cost a list access to count: plain numbers, turned into Prometheus' words only when asked.

A `Tally` belongs to one thread. It knows nothing of registries: whoever owns it collects it.
"""

from collections.abc import Sequence


class Tally:
    """How many values fell below each of some bounds, and their sum.

    Args:
        bounds: upper bounds of the buckets, inclusive, rising; one without a bound is added.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = [float(bound) for bound in bounds]
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Take a value in."""
        at, bounds = 0, self._bounds
        while at < len(bounds) and bounds[at] < value:  # most values are small: bisecting takes longer
            at += 1
        self._counts[at] = self._counts[at] + 1  # in place, it would be boxed
        self._sum += value

    @property
    def sum(self) -> float:
        """The sum of all values."""
        return self._sum

    def buckets(self) -> list[tuple[str, float]]:
        """Return each bound and how many values were at most that, as a `HistogramMetricFamily` takes them."""
        buckets: list[tuple[str, float]] = []
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((str(bound), total))
        return buckets
