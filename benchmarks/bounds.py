"""What no scheduler can be better than on sessions of one workload, beside what the tuned router does with them.

    python -m benchmarks.bounds [--scenario w2-coding] [--seeds 3] [--memory 1.0]

A run takes no less than with an engine for itself that forgets nothing: its tools, its own prefill, its replies.
What is prefilled again is told for one engine with the memory of all, and for as many as there are with the runs dealt
out among them: as engines evict, what was used last stays; as one would that knows which runs have ended, or when each
comes back. Sessions go at their own pace there, and a prompt's beginning that all share is free.
"""

import argparse
import heapq
import statistics
from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import count
from typing import NamedTuple

from luftpause.testkit.load.summary import percentile
from luftpause.testkit.sim.plans import RunPlan
from luftpause.testkit.sim.scenario import Scenario, load_scenario
from luftpause.testkit.sim.simulate import simulate
from luftpause.testkit.sim.sources import Drawn

ROUTER = "sglang-router-tuned"
NEVER = float("inf")


class FirstOut(Enum):
    """Whose tokens an engine that is full gives up first."""

    LEAST_RECENT = "least recent"
    ENDED = "ended"
    LAST_BACK = "last back"


class Use(NamedTuple):
    """A turn: when, of which run, what was computed for it before, and what is in the cache after it, tokens."""

    at: float
    run: str
    known: int
    after: int


def main() -> None:
    parser = argparse.ArgumentParser(description="Tell bounds.")
    parser.add_argument("--scenario", default="w2-coding", help="an open loop of sessions")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--memory", type=float, default=1.0, help="times what the scenario's engines have")
    options = parser.parse_args()
    scenario = load_scenario(options.scenario)
    each = int(options.memory * (scenario.engine.kv_tokens - max(group.system_tokens for group in scenario.agents)))
    ratios: list[tuple[float, ...]] = []
    print(f"{scenario.name}, ÷ {ROUTER}: p50 and p99 of runs alone; re-prefilled where all memory is one,")
    print(f"out first: {', '.join(out.value for out in FirstOut)}; the same of {scenario.replicas} engines apart")
    for seed in range(1, options.seeds + 1):
        routed = simulate(scenario, ROUTER, seed)
        took = [run.ended_at - run.begun_at for run in routed.ended]
        alone = [run.alone_s for run in routed.ended]
        uses = uses_of(scenario, seed)
        again = routed.figures.reprefilled_tokens_per_run or NEVER
        ratios.append(
            (
                *((percentile(alone, share) or 0.0) / (percentile(took, share) or NEVER) for share in (50, 99)),
                *(lost(uses, scenario.replicas * each, scenario.warmup_s, out) / again for out in FirstOut),
                *(lost_apart(uses, scenario.replicas, each, scenario.warmup_s, out) / again for out in FirstOut),
            )
        )
        print(f"seed {seed}: " + ", ".join(f"{ratio:.3f}" for ratio in ratios[-1]))
    print("median: " + ", ".join(f"{statistics.median(column):.3f}" for column in zip(*ratios, strict=True)))


def uses_of(scenario: Scenario, seed: int) -> list[Use]:
    """Return all turns of an open loop's runs, each run at its own pace."""
    source, until = Drawn(scenario, seed), scenario.warmup_s + scenario.minutes * 60
    order = count()
    starts = [(at, next(order), stream) for at, stream in source.starts()]
    heapq.heapify(starts)
    uses: list[Use] = []
    while starts:
        at, _, stream = heapq.heappop(starts)
        if at > until:
            continue
        uses += turns_of(source.begin(stream), at, scenario)
        after = source.next_at(stream, at)
        if after is not None:
            heapq.heappush(starts, (after, next(order), stream))
    return sorted(uses)


def turns_of(plan: RunPlan, begun_at: float, scenario: Scenario) -> list[Use]:
    """Return a run's turns at its own pace. A prompt that begins anew knows nothing of what was there before."""
    engine, at, context, turns = scenario.engine, begun_at, 0, []
    for leg in plan.legs:
        if leg.rewritten:
            context = 0
        after = context + leg.new_tokens + leg.reply_tokens
        turns.append(Use(at, plan.run, context, after))
        at += leg.new_tokens / engine.prefill_tps + leg.reply_tokens * (engine.step_s + engine.decode_s)
        at += leg.away_s or 0.0
        context = after
    return turns


def lost(uses: Sequence[Use], memory: int, since: float, out: FirstOut) -> float:
    """Return how many tokens a run finds gone of what was computed for it, on the average of those seen since then.

    Args:
        uses: in order of time.
        memory: tokens that are kept.
        since: what happened before counts for nothing.
        out: what goes first where more than that would be kept; of those who are alike, who was there longest ago.
    """
    gone, runs = _gone(uses, memory, since, out)
    return gone / max(1, runs)


def lost_apart(uses: Sequence[Use], engines: int, memory: int, since: float, out: FirstOut) -> float:
    """Return the same of engines with so much memory each. Runs are dealt out as they begin, and stay."""
    engine_of: dict[str, int] = {}
    for use in uses:
        engine_of.setdefault(use.run, len(engine_of) % engines)
    dealt = [[use for use in uses if engine_of[use.run] == engine] for engine in range(engines)]
    each = [_gone(part, memory, since, out) for part in dealt]
    return sum(gone for gone, _ in each) / max(1, sum(runs for _, runs in each))


def _gone(uses: Sequence[Use], memory: int, since: float, out: FirstOut) -> tuple[int, int]:
    next_at: dict[str, list[float]] = {}
    for use in reversed(uses):
        next_at.setdefault(use.run, []).append(use.at)
    kept: dict[str, int] = {}  # in order of use
    gone, runs = 0, set[str]()
    for use in uses:
        next_at[use.run].pop()
        found = kept.pop(use.run, 0)
        if use.at > since:
            gone += max(0, use.known - found)
            runs.add(use.run)
        kept[use.run] = use.after
        surplus = sum(kept.values()) - memory
        while surplus > 0 and len(kept) > 1:
            goes = _first_out(list(kept)[:-1], next_at, out)
            taken = min(surplus, kept[goes])
            kept[goes] -= taken
            surplus -= taken
            if not kept[goes]:
                del kept[goes]
    return gone, len(runs)


def _first_out(runs: Sequence[str], next_at: Mapping[str, Sequence[float]], out: FirstOut) -> str:
    """Return whose tokens go. `runs`: in order of use."""
    match out:
        case FirstOut.LEAST_RECENT:
            return runs[0]
        case FirstOut.ENDED:
            return next((run for run in runs if not next_at[run]), runs[0])
        case FirstOut.LAST_BACK:
            return max(runs, key=lambda run: next_at[run][-1] if next_at[run] else NEVER)


if __name__ == "__main__":
    main()
