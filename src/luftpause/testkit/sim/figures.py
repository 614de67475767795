"""From a simulated world to figures, and from the figures of several seeds to medians with their spread. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.load.summary import percentile
from luftpause.testkit.sim.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one seed of one arm came to, over the counted time. None where nothing was measured.

    Attributes:
        reprefilled_tokens_per_run: prompt tokens that had been computed for the run before, and were again.
        moves_per_run: turns that went to another replica than the one before.
        failed_runs: given up by their agents.
        failed_turns: of the whole time, as are retractions: requests that an engine took back for want of memory.
        unfinished_runs: under way at the end.
        loads: engines that were loaded, of the whole time.
        longest_turn_s: from a turn's offer to its last byte, of the runs that ended.
    """

    interactive_runs_per_min: float
    interactive_p50_s: float | None
    interactive_p99_s: float | None
    batch_runs_per_min: float
    batch_p50_s: float | None
    batch_p99_s: float | None
    reprefilled_tokens_per_run: float | None
    moves_per_run: float | None
    failed_runs: int
    failed_turns: int
    retractions: int
    unfinished_runs: int
    loads: int
    longest_turn_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A figure over all seeds that have it: its median, least and greatest value, and each seed's in their order."""

    median: float | None
    low: float | None
    high: float | None
    by_seed: tuple[float | None, ...]


def figures_of(world: World, since: float, until: float) -> Figures:
    """Return the figures of runs that ended well from one instant to another."""
    ended = [run for run in world.ended if since < run.ended_at <= until]
    well = [run for run in ended if not run.failed]
    minutes = (until - since) / 60
    times = {
        service_class: [run.ended_at - run.begun_at for run in well if run.service_class is service_class]
        for service_class in ServiceClass
    }
    interactive, batch = times[ServiceClass.INTERACTIVE], times[ServiceClass.BATCH]
    return Figures(
        interactive_runs_per_min=round(len(interactive) / minutes, 4),
        interactive_p50_s=percentile(interactive, 50),
        interactive_p99_s=percentile(interactive, 99),
        batch_runs_per_min=round(len(batch) / minutes, 4),
        batch_p50_s=percentile(batch, 50),
        batch_p99_s=percentile(batch, 99),
        reprefilled_tokens_per_run=_mean([run.reprefilled_tokens for run in well]),
        moves_per_run=_mean([run.moves for run in well]),
        failed_runs=len(ended) - len(well),
        failed_turns=world.failed_turns,
        retractions=world.totals().retractions,
        unfinished_runs=world.unfinished,
        loads=world.loads,
        longest_turn_s=max((seconds for run in ended for seconds in run.turn_s), default=None),
    )


def spreads(seeds: Sequence[Figures]) -> Mapping[str, Spread]:
    """Return each figure's spread, by its name."""
    return {field.name: _spread([getattr(figures, field.name) for figures in seeds]) for field in fields(Figures)}


def _spread(values: Sequence[float | None]) -> Spread:
    known = [value for value in values if value is not None]
    if not known:
        return Spread(median=None, low=None, high=None, by_seed=tuple(values))
    median = round(statistics.median(known), 4)
    return Spread(median=median, low=min(known), high=max(known), by_seed=tuple(values))


def _mean(values: Sequence[int]) -> float | None:
    return round(statistics.fmean(values), 4) if values else None
