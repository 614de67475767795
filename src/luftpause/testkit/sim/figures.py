"""From what happened to figures, and from the figures of several seeds to medians with their spread. Pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.load.summary import percentile
from luftpause.testkit.sim.fairness import fairness, service_of
from luftpause.testkit.sim.past import AnsweredTurn, EndedRun, Past
from luftpause.testkit.sim.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one seed of one arm came to, over the counted time. None where nothing was measured.

    Runs are those that nobody else began: what a tree of them takes is its root's time.

    Attributes:
        reprefilled_tokens_per_run: prompt tokens that had been computed for the run before, and were again.
        cached_share: of what continuations knew already, as far as their engines still had it.
        prompt_cached_share: of all prompt tokens, found in a cache.
        moves_per_run: turns that went to another replica than the one before.
        tree_mean_s: from the beginning of a tree to the end of its root, over all that began in the counted time; one
            that did not end counts with what it took until then, so a backlog shows.
        fairness: of what payers got against what they were entitled to, from 0 to 1; see `fairness.py`.
        failed_runs: given up by their agents.
        failed_turns: of the whole time, as are retractions: requests that an engine took back for want of memory.
        unfinished_runs: under way at the end.
        loads: engines that were loaded, of the whole time.
        longest_turn_s: from a turn's offer to its last byte, of the runs that ended.
    """

    runs_per_min: float
    run_p50_s: float | None
    run_p99_s: float | None
    interactive_runs_per_min: float
    interactive_p50_s: float | None
    interactive_p99_s: float | None
    batch_runs_per_min: float
    batch_p50_s: float | None
    batch_p99_s: float | None
    reprefilled_tokens_per_run: float | None
    cached_share: float | None
    prompt_cached_share: float | None
    moves_per_run: float | None
    tree_mean_s: float | None
    tree_p99_s: float | None
    fairness: float | None
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


def figures_of(past: Past, scenario: Scenario, since: float, until: float) -> Figures:
    """Return the figures of runs that ended well from one instant to another."""
    ended = [run for run in past.ended if since < run.ended_at <= until]
    well = [run for run in ended if not run.failed]
    minutes = (until - since) / 60
    times = {
        service_class: [_took_s(run) for run in well if run.service_class is service_class and run.parent is None]
        for service_class in ServiceClass
    }
    interactive, batch = times[ServiceClass.INTERACTIVE], times[ServiceClass.BATCH]
    trees = _tree_times(past, scenario, since, until)
    answered = [turn for turn in past.answered if since < turn.ended_at <= until]
    return Figures(
        runs_per_min=round((len(interactive) + len(batch)) / minutes, 4),
        run_p50_s=percentile([*interactive, *batch], 50),
        run_p99_s=percentile([*interactive, *batch], 99),
        interactive_runs_per_min=round(len(interactive) / minutes, 4),
        interactive_p50_s=percentile(interactive, 50),
        interactive_p99_s=percentile(interactive, 99),
        batch_runs_per_min=round(len(batch) / minutes, 4),
        batch_p50_s=percentile(batch, 50),
        batch_p99_s=percentile(batch, 99),
        reprefilled_tokens_per_run=_mean([run.reprefilled_tokens for run in well]),
        cached_share=cached_share(answered),
        prompt_cached_share=prompt_cached_share(answered),
        moves_per_run=_mean([run.moves for run in well]),
        tree_mean_s=_mean(trees),
        tree_p99_s=percentile(trees, 99),
        fairness=_fairness(past, scenario, since, until),
        failed_runs=len(ended) - len(well),
        failed_turns=past.failed_turns,
        retractions=past.retractions,
        unfinished_runs=past.unfinished,
        loads=past.loads,
        longest_turn_s=max((seconds for run in ended for seconds in run.turn_s), default=None),
    )


def cached_share(turns: Sequence[AnsweredTurn]) -> float | None:
    """Return how much of what continuations knew their engines still had; None without any."""
    known = sum(turn.known_tokens for turn in turns)
    found = sum(min(turn.cached_tokens, turn.known_tokens) for turn in turns)
    return round(found / known, 4) if known else None


def prompt_cached_share(turns: Sequence[AnsweredTurn]) -> float | None:
    """Return how much of all prompts was found in a cache; None without any."""
    prompts = sum(turn.prompt_tokens for turn in turns)
    return round(sum(turn.cached_tokens for turn in turns) / prompts, 4) if prompts else None


def _took_s(run: EndedRun) -> float:
    return run.ended_at - run.begun_at


def _tree_times(past: Past, scenario: Scenario, since: float, until: float) -> list[float]:
    streams = {number for number, group in enumerate(scenario.agents) if group.fan_out is not None}
    roots = [run for run in past.ended if run.stream in streams and run.parent is None]
    ended = [_took_s(run) for run in roots if since < run.begun_at <= until and run.ended_at <= until]
    left = [run for run in past.under_way if run.stream in streams]
    return ended + [until - run.begun_at for run in left if since < run.begun_at]


def _fairness(past: Past, scenario: Scenario, since: float, until: float) -> float | None:
    """Return the fairness among principals, or among callers where there are no principals; None for one payer."""
    by_principal = any(group.principal for group in scenario.agents)

    def payer(each: AnsweredTurn | EndedRun) -> str:
        return each.principal if by_principal else each.caller

    services: dict[str, float] = {}
    for turn in past.answered:
        if since < turn.ended_at <= until:
            services[payer(turn)] = services.get(payer(turn), 0.0) + service_of(turn)
    demands: dict[str, float] = {}
    for group in scenario.agents:
        names = [group.principal] if by_principal else [f"{group.name}-{number}" for number in range(group.callers)]
        for name in names:
            own = [run for run in past.ended if payer(run) == name and run.alone_s > 0]
            rate = statistics.fmean(run.service / run.alone_s for run in own) if own else math.inf
            demands[name] = demands.get(name, 0.0) + rate * (until - since) * group.count / len(names)
    return round(fairness(services, demands), 4) if len(demands) > 1 and all(demands.values()) else None


def spread_of(values: Sequence[float | None]) -> Spread:
    """Return the spread of a figure, one value for each seed."""
    known = [value for value in values if value is not None]
    if not known:
        return Spread(median=None, low=None, high=None, by_seed=tuple(values))
    median = round(statistics.median(known), 4)
    return Spread(median=median, low=min(known), high=max(known), by_seed=tuple(values))


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 4) if values else None
