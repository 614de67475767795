"""The section of engines on demand in `docs/MEASUREMENTS.md`, from a stored run."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.doorbench.report import table
from benchmarks.swapbench.results import SwapResults

from luftpause.testkit.bench.machine import machine_line

ON_DEMAND: Final = "on demand"
BY_HAND: Final = "by hand"
STATIC: Final = "static"
PARKED: Final = "parked"
AGAIN: Final = "computed again"
COLD_MORE_MS_MAX: Final = 150.0
WARM_MORE_MS_MAX: Final = 1.0


def added_ms(series: Mapping[str, Sequence[float]], to: str) -> float:
    """Return what the way through the launcher adds: the median over the rounds of the difference within each."""
    return statistics.median(ours - theirs for ours, theirs in zip(series[ON_DEMAND], series[to], strict=True))


def section(results: SwapResults) -> str:
    """Return the section, its heading included."""
    phases = table(["phase", "took, ms"], [[name, f"{value:,.0f}"] for name, value in results.phases.items()])
    costs = [
        _cost("from nothing to the first answer", results.cold, BY_HAND, COLD_MORE_MS_MAX),
        _cost("the same of an engine without a model", results.quick, BY_HAND, COLD_MORE_MS_MAX),
        _cost("one turn of a model that is up", results.warm, STATIC, WARM_MORE_MS_MAX),
    ]
    parked, again = (statistics.median(results.returning[name]) for name in (PARKED, AGAIN))
    header = ["p50, ms", ON_DEMAND, "without the launcher", "ratio", "added, limit"]
    return f"""## Engines on demand

A real llama.cpp server with a small model, started when a turn asks for it. "Without the launcher" is the same server
started by hand, asked until it is ready and then that turn, and a turn on a replica that is declared; both in the same
rounds. The engine without a model is ready at once, so there the launcher's own way shows beside little noise.
Repeat it with `scripts/swap --json benchmarks/results/swap.json`.

- Run: {results.when}, commit {results.commit}.
- Machine: {machine_line(results.machine)}, {results.load_after:.1f} after it.

{phases}

{table(header, costs)}

A run whose model was swapped out for another while its tool was out answers again after {parked:,.0f} ms where its KV
was parked, after {again:,.0f} ms where it was computed again, the load included: {again / parked:.1f}×.
"""


def _cost(what: str, series: Mapping[str, Sequence[float]], to: str, limit_ms: float) -> list[str]:
    ours, theirs = (statistics.median(series[name]) for name in (ON_DEMAND, to))
    more = added_ms(series, to)
    verdict = "**met**" if more <= limit_ms else f"**missed by {more / limit_ms:.2f}×**"
    medians = [f"{ours:,.2f}", f"{theirs:,.2f}", f"{ours / theirs:.2f}×"]
    return [f"{what}, {len(series[to])} rounds", *medians, f"{more:+.2f}, ≤ {limit_ms:g}: {verdict}"]
