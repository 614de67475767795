"""From runs and turns to the curves that plots show. Pure."""

import statistics
from collections.abc import Iterable, Sequence

from luftpause.testkit.bench.samples import QUANTILES, TIME_SLICES, Curves
from luftpause.testkit.sim.past import AnsweredTurn, EndedRun


def curves_of(ended: Iterable[EndedRun], turns: Iterable[AnsweredTurn], since: float, until: float) -> Curves:
    """Return the curves of the counted time, which lasts from one instant to another."""
    times: dict[str, list[float]] = {}
    for run in ended:
        if not run.failed and run.parent is None:
            times.setdefault(run.service_class.value, []).append(run.ended_at - run.begun_at)
    by_class = {name: quantiles(sorted(values)) for name, values in sorted(times.items())}
    return Curves(run_s=by_class, cached=cache_course(turns, since, until))


def quantiles(ordered: Sequence[float]) -> tuple[float, ...]:
    """Return QUANTILES + 1 values, evenly by rank, the first and the last included; none of none."""
    if not ordered:
        return ()
    last = len(ordered) - 1
    return tuple(round(ordered[round(last * point / QUANTILES)], 3) for point in range(QUANTILES + 1))


def cache_course(turns: Iterable[AnsweredTurn], since: float, until: float) -> tuple[tuple[int, int], ...]:
    """Return for each slice what its turns found in a cache of what they could have found, tokens."""
    found, known = [0] * TIME_SLICES, [0] * TIME_SLICES
    for turn in turns:
        if since < turn.ended_at <= until:
            slot = min(TIME_SLICES - 1, int((turn.ended_at - since) / (until - since) * TIME_SLICES))
            found[slot] += min(turn.cached_tokens, turn.known_tokens)
            known[slot] += turn.known_tokens
    return tuple(zip(found, known, strict=True))


def middle_curves(curves: Sequence[Curves]) -> Curves:
    """Return the curves of several seeds as one: run times as medians rank by rank, the cache as sums."""
    classes = sorted({name for each in curves for name in each.run_s})
    run_s = {name: _middle([each.run_s[name] for each in curves if each.run_s.get(name)]) for name in classes}
    courses = [each.cached for each in curves if each.cached]
    cached = tuple(
        (sum(found for found, _ in slot), sum(known for _, known in slot)) for slot in zip(*courses, strict=True)
    )
    return Curves(run_s=run_s, cached=cached)


def _middle(ranked: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(round(statistics.median(values), 3) for values in zip(*ranked, strict=True))
