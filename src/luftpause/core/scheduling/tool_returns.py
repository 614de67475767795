"""When a run comes back from its tool: the law of its return, from what the tool taught and who is out now.

Survival is estimated as in a life table: in each bucket of durations, the share of those still out that came back in
it. Who was given up, and who is out now, was seen that long and no longer: it counts as half present in its bucket and
not at all in later ones. Within a bucket survival falls in a straight line.
"""

from collections.abc import Sequence
from math import exp, log
from typing import Final, NamedTuple

from luftpause.core.scheduling.tool_history import BOUNDS_S, BUCKETS, PRIOR, History, bucket_of, total

LAST_S: Final = BOUNDS_S[-1]
"""Beyond it survival falls exponentially with this mean, seconds: who has been out for so long tells nothing more."""

_EDGES_S: Final = (0.0, *BOUNDS_S)


class ReturnLaw(NamedTuple):
    """The law of T, the time that a run stays out on one tool.

    Attributes:
        out: P(T > t) at 0 and each of BOUNDS_S.
        ahead: of the integral of P(T > t), what lies beyond each of them, seconds.
    """

    out: tuple[float, ...]
    ahead: tuple[float, ...]

    def survival(self, seconds: float) -> float:
        """Return P(T > seconds)."""
        if seconds >= LAST_S:
            return self.out[-1] * exp((LAST_S - seconds) / LAST_S)
        bucket, share = _place(seconds)
        return self.out[bucket] + share * (self.out[bucket + 1] - self.out[bucket])

    def quantile(self, share: float) -> float:
        """Return the time within which this share of the runs, 0 to below 1, is back, seconds."""
        wanted = 1.0 - share
        if wanted < self.out[-1]:
            return LAST_S * (1.0 + log(self.out[-1] / wanted))
        bucket = 0
        while self.out[bucket + 1] > wanted:
            bucket += 1
        before, after = self.out[bucket], self.out[bucket + 1]
        low, high = _EDGES_S[bucket], _EDGES_S[bucket + 1]
        return low + (high - low) * (before - wanted) / (before - after)

    def expected_return(self, elapsed_s: float) -> float:
        """Return how much longer a run stays out that has been for so long: E[T - elapsed | T > elapsed], seconds."""
        if elapsed_s >= LAST_S:
            return LAST_S
        bucket, share = _place(elapsed_s)
        now = self.survival(elapsed_s)
        rest = (1.0 - share) * (_EDGES_S[bucket + 1] - _EDGES_S[bucket])
        return (self.ahead[bucket + 1] + rest * (now + self.out[bucket + 1]) / 2) / now

    def best_wait(self, worth_s: float) -> float:
        """Return how long to keep a place for a run that is out, seconds: argmax of worth · F(t) - E[min(T, t)].

        Args:
            worth_s: what its return to a kept place saves, in seconds of the same place.

        Within a bucket the gain is convex in t, so the best time is 0 or one of the bounds; never more than LAST_S.
        """
        best_s, best_gain = 0.0, 0.0
        for edge_s, out, ahead in zip(_EDGES_S, self.out, self.ahead, strict=True):
            gain = worth_s * (1.0 - out) - (self.ahead[0] - ahead)
            if gain > best_gain:
                best_s, best_gain = edge_s, gain
        return best_s


def return_law(history: History, running: Sequence[tuple[float, int]] = ()) -> ReturnLaw:
    """Return the law that a history teaches.

    Args:
        history: of the tool.
        running: who is out now: seconds until now, and how many runs have been out so long. Together they weigh no
            more than all that the tool taught and the prior: what was learned is forgotten with each return, so the
            many that are out on a busy tool would else outweigh the few returns that are remembered of it.
    """
    returns = [weight / history.unit + prior for weight, prior in zip(history.returns, PRIOR, strict=True)]
    censored = [weight / history.unit for weight in history.losses]
    known, out_now = total(returns) + total(censored), sum([count for _, count in running])
    share = min(1.0, known / out_now) if out_now else 0.0
    for seconds, count in running:
        censored[bucket_of(seconds)] += share * count
    at_risk, still = [0.0] * BUCKETS, 0.0
    for bucket in range(BUCKETS - 1, -1, -1):
        still += returns[bucket] + censored[bucket]
        at_risk[bucket] = still
    out = [1.0]
    for bucket in range(BUCKETS - 1):
        out.append(out[-1] * (1.0 - returns[bucket] / (at_risk[bucket] - censored[bucket] / 2)))
    ahead = [out[-1] * LAST_S]
    for bucket in range(BUCKETS - 2, -1, -1):
        width_s = _EDGES_S[bucket + 1] - _EDGES_S[bucket]
        ahead.append(ahead[-1] + width_s * (out[bucket] + out[bucket + 1]) / 2)
    return ReturnLaw(tuple(out), tuple(reversed(ahead)))


def _place(seconds: float) -> tuple[int, float]:
    """Return the bucket of a duration below LAST_S, and how far into it that is, 0 to 1."""
    bucket = bucket_of(seconds)
    low, high = _EDGES_S[bucket], _EDGES_S[bucket + 1]
    return bucket, (max(0.0, seconds) - low) / (high - low)
