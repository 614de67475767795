"""What a workload must show, and whether it does: ratios within the same seed, judged by their median. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import msgspec

from luftpause.testkit.bench.samples import Sample

Samples = Mapping[str, Mapping[str, Sequence[Sample]]]
"""By scenario, then by arm: one for each seed, in the order of the seeds."""

EPSILON: Final = 1e-9


class Relation(Enum):
    """How a value stands to its bound."""

    AT_LEAST = "≥"
    AT_MOST = "≤"
    WITHIN = "within"
    """No further from 1 than the bound, to either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One thing to show.

    Attributes:
        scenario: where.
        figure: of what; a field of the samples' figures.
        against: the arm whose figure of the same seed it is divided by; None takes the figure as it is.
        every_arm: it must hold for all arms, not for ours alone.
        spread_counts: WITHIN holds when the spread over the seeds reaches into the bound, too.
    """

    scenario: str
    figure: str
    relation: Relation
    bound: float
    against: str | None = None
    every_arm: bool = False
    spread_counts: bool = False

    @property
    def text(self) -> str:
        """The claim in words."""
        unit = "" if self.against is None else "× " + self.against
        if self.relation is Relation.WITHIN:
            or_spread = " or the spread" if self.spread_counts else ""
            return f"{self.scenario}: {self.figure} within {self.bound:.0%}{or_spread} of {self.against}"
        return f"{self.scenario}: {self.figure} {self.relation.value} {self.bound:g}{unit}"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an arm shows what is claimed.

    Attributes:
        value: median over the seeds; None where it was not measured, which meets nothing.
        low: the least of a seed, as `high` is the greatest.
        missed_by: how many times as good it would have to be, 1 or less when it is met; None where that has no meaning.
        rival: the best arm of others in that figure, and `rival_ratio` ours ÷ theirs, by their medians.
    """

    claim: str
    arm: str
    value: float | None
    low: float | None
    high: float | None
    met: bool
    missed_by: float | None
    rival: str = ""
    rival_ratio: float | None = None


def judge(
    claims: Sequence[Claim], samples: Samples, ours: Sequence[str], own: Sequence[str], *, noisy: bool = False
) -> list[Verdict]:
    """Return a verdict for each claim on each arm that it is made of and that was measured.

    Args:
        claims: what to show.
        samples: what was measured.
        ours: arms that claims are made of.
        own: arms that are no rivals, ours among them.
        noisy: real time passed, so two arms are the same when their spread over the seeds says so.
    """
    return [
        _verdict(replace(claim, spread_counts=noisy), arm, samples[claim.scenario], own)
        for claim in claims
        if claim.scenario in samples
        for arm, seeds in samples[claim.scenario].items()
        if seeds and arm != claim.against and (claim.every_arm or arm in ours)
    ]


def paired(of: Sequence[Sample], figure: str, against: Sequence[Sample] | None) -> list[float]:
    """Return the figure of each seed, divided by the other arm's of that seed if there is one to compare with."""
    mine = [sample.figure(figure) for sample in of]
    if against is None:
        return [value for value in mine if value is not None]
    theirs = [sample.figure(figure) for sample in against]
    pairs = zip(mine, theirs, strict=False)
    return [value / other for value, other in pairs if value is not None and other is not None and other > 0]


def _verdict(claim: Claim, arm: str, arms: Mapping[str, Sequence[Sample]], own: Sequence[str]) -> Verdict:
    against = None if claim.against is None else arms.get(claim.against)
    known = claim.against is None or bool(against)
    values = paired(arms[arm], claim.figure, against) if known else []
    broken = any(sample.broken for sample in arms[arm])
    if not values:
        return Verdict(claim=claim.text, arm=arm, value=None, low=None, high=None, met=False, missed_by=None)
    value = statistics.median(values)
    rival, ratio = _best_rival(claim, arm, arms, own)
    missed_by = _missed_by(claim, value)
    return Verdict(
        claim=claim.text,
        arm=arm,
        value=round(value, 4),
        low=round(min(values), 4),
        high=round(max(values), 4),
        met=_holds(claim, value, min(values), max(values)) and not broken,
        missed_by=None if missed_by is None else round(missed_by, 3),
        rival=rival,
        rival_ratio=None if ratio is None else round(ratio, 3),
    )


def _holds(claim: Claim, value: float, low: float, high: float) -> bool:
    match claim.relation:
        case Relation.AT_LEAST:
            return value >= claim.bound - EPSILON
        case Relation.AT_MOST:
            return value <= claim.bound + EPSILON
        case Relation.WITHIN:
            if not claim.spread_counts:
                low = high = value
            return low <= 1 + claim.bound + EPSILON and high >= 1 - claim.bound - EPSILON


def _missed_by(claim: Claim, value: float) -> float | None:
    match claim.relation:
        case Relation.AT_LEAST:
            return claim.bound / value if value > 0 else None
        case Relation.AT_MOST:
            return value / claim.bound if claim.bound > 0 else None
        case Relation.WITHIN:
            return abs(value - 1) / claim.bound


def _best_rival(
    claim: Claim, arm: str, arms: Mapping[str, Sequence[Sample]], own: Sequence[str]
) -> tuple[str, float | None]:
    """Return who of the others does best in that figure, and ours ÷ theirs by medians."""
    if claim.relation is Relation.WITHIN or arm not in own:
        return "", None
    others = {name: _median(samples, claim.figure) for name, samples in arms.items() if name not in own}
    found = [(value, name) for name, value in others.items() if value is not None]
    mine = _median(arms[arm], claim.figure)
    if not found or mine is None:
        return "", None
    theirs, name = max(found) if claim.relation is Relation.AT_LEAST else min(found)
    return name, mine / theirs if theirs > 0 else None


def _median(samples: Sequence[Sample], figure: str) -> float | None:
    values = [value for sample in samples if (value := sample.figure(figure)) is not None]
    return statistics.median(values) if values else None
