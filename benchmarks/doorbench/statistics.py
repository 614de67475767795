"""The arithmetic of the benchmark: percentiles, medians with spread, ratios round by round, due times.

Knows nothing of HTTP or processes.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A median with the smallest and the largest value beside it, all in the unit of the samples."""

    median: float
    low: float
    high: float


def percentile(sorted_samples: Sequence[float], quantile: float) -> float:
    """Return the nearest-rank percentile of samples that are already sorted.

    Args:
        sorted_samples: at least one value, ascending.
        quantile: between 0 and 1; 0.5 is the median.

    Raises:
        ValueError: there are no samples, or the quantile is out of range.
    """
    if not sorted_samples:
        raise ValueError("no samples")
    if not 0 <= quantile <= 1:
        raise ValueError(f"quantile {quantile} is not between 0 and 1")
    rank = -(-len(sorted_samples) * quantile // 1)
    return sorted_samples[max(int(rank), 1) - 1]


def spread(values: Sequence[float]) -> Spread:
    """Return median, lowest and highest of at least one value.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values")
    return Spread(median=statistics.median(values), low=min(values), high=max(values))


def ratios(ours: Sequence[float | None], theirs: Sequence[float | None]) -> list[float]:
    """Return ours ÷ theirs for each round in which both were measured and theirs is above zero.

    Rounds are compared with themselves, so that a machine that slows down between rounds moves both sides.
    """
    return [
        mine / other
        for mine, other in zip(ours, theirs, strict=False)
        if mine is not None and other is not None and other > 0
    ]


def differences(ours: Sequence[float | None], theirs: Sequence[float | None]) -> list[float]:
    """Return ours − theirs for each round in which both were measured."""
    return [mine - other for mine, other in zip(ours, theirs, strict=False) if mine is not None and other is not None]


def due_times(*, start_ns: int, rate_per_s: float, duration_s: float) -> list[int]:
    """Return the instants (ns) at which an open loop sends: evenly spaced, the first at `start_ns`.

    Each is computed from the start and not from its predecessor, so that rounding never accumulates.

    Raises:
        ValueError: the rate is not above zero.
    """
    if rate_per_s <= 0:
        raise ValueError("the rate must be above zero")
    count = int(rate_per_s * duration_s)
    return [start_ns + round(index * 1e9 / rate_per_s) for index in range(count)]
