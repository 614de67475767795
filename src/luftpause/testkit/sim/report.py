"""The results of a simulation as JSON and as rows of a table. Pure; the JSON holds nothing that a clock said."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from luftpause.testkit.sim.figures import Spread, spreads
from luftpause.testkit.sim.scenario import Scenario
from luftpause.testkit.sim.simulate import Simulated

Results = Mapping[str, Sequence[Simulated]]
"""By arm: what each seed came to, in the order of the seeds."""

COLUMNS = {
    "interactive_runs_per_min": ("interactive runs/min", 1),
    "interactive_p50_s": ("interactive p50 s", 1),
    "interactive_p99_s": ("interactive p99 s", 1),
    "batch_runs_per_min": ("batch runs/min", 1),
    "reprefilled_tokens_per_run": ("re-prefilled tokens/run", 0),
}
"""Which figures the table shows, under which heading, with how many decimals."""


def report_json(scenario: Scenario, seeds: Sequence[int], results: Results) -> str:
    """Return everything as JSON: the same scenario and seeds give the same bytes."""
    arms = [
        {"arm": arm, **{name: asdict(spread) for name, spread in _spreads(simulated).items()}}
        for arm, simulated in results.items()
    ]
    report = {
        "scenario": scenario.name,
        "warmup_s": scenario.warmup_s,
        "minutes": scenario.minutes,
        "seeds": list(seeds),
        "arms": arms,
    }
    return json.dumps(report, indent=2) + "\n"


def headings() -> tuple[str, ...]:
    """Return the headings of the table."""
    return ("arm", *(heading for heading, _ in COLUMNS.values()), "simulated s per s")


def rows(results: Results) -> list[tuple[str, ...]]:
    """Return a row for each arm: medians, with the least and the greatest of several seeds beside them."""
    made = []
    for arm, simulated in results.items():
        found = _spreads(simulated)
        cells = [_cell(found[name], decimals) for name, (_, decimals) in COLUMNS.items()]
        speed = statistics.median(each.simulated_s / max(each.took_s, 1e-9) for each in simulated)
        made.append((arm, *cells, f"{speed:.0f}"))
    return made


def _spreads(simulated: Sequence[Simulated]) -> Mapping[str, Spread]:
    return spreads([each.figures for each in simulated])


def _cell(spread: Spread, decimals: int) -> str:
    if spread.median is None or spread.low is None or spread.high is None:
        return "-"
    median = f"{spread.median:,.{decimals}f}"
    if len(spread.by_seed) == 1:
        return median
    return f"{median} ({spread.low:,.{decimals}f}–{spread.high:,.{decimals}f})"
