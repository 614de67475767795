"""Results as rows of text, for a terminal and for documents: every absolute figure beside its ratio. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from luftpause.testkit.bench.claims import Verdict
from luftpause.testkit.bench.results import ArmResult
from luftpause.testkit.sim.figures import Spread

NONE: Final = "–"

_MANY: Final = 100
"""From here on no decimals are shown: they would tell nothing."""

MORE_IS_BETTER: Final = frozenset(
    {
        *("runs_per_min", "interactive_runs_per_min", "batch_runs_per_min", "calls_per_s"),
        *("cached_share", "prompt_cached_share", "fairness"),
    }
)
"""Of all other figures less is better."""

_OF_A_CLASS: Final = ("interactive_runs_per_min", "batch_runs_per_min")

ALIKE: Final = 0.02
"""Arms whose medians differ by no more are equally good: more than that a load that nobody queues in must not show."""

MET: Final = "met"
MISSED: Final = "missed"

BEST: Final = "*"
"""Behind the best figures of a column."""

TITLES: Final[Mapping[str, tuple[str, int]]] = {
    "runs_per_min": ("runs/min", 1),
    "run_p50_s": ("run p50 s", 1),
    "run_p99_s": ("run p99 s", 1),
    "interactive_runs_per_min": ("interactive runs/min", 1),
    "interactive_p50_s": ("interactive p50 s", 1),
    "interactive_p99_s": ("interactive p99 s", 1),
    "batch_runs_per_min": ("batch runs/min", 1),
    "batch_p50_s": ("batch p50 s", 1),
    "batch_p99_s": ("batch p99 s", 1),
    "reprefilled_tokens_per_run": ("re-prefilled tokens/run", 0),
    "cached_share": ("cache found", 2),
    "prompt_cached_share": ("prompts from cache", 3),
    "tree_mean_s": ("tree mean s", 1),
    "tree_p99_s": ("tree p99 s", 1),
    "fairness": ("Jain", 3),
    "broken_rules": ("broken rules", 0),
    "failed_runs": ("lost runs", 0),
    "failed_turns": ("failed turns", 0),
    "loads": ("loads", 0),
    "longest_turn_s": ("longest turn s", 1),
    "call_p50_ms": ("call p50 ms", 1),
    "call_p99_ms": ("call p99 ms", 1),
    "calls_per_s": ("calls/s", 1),
}
"""How a figure is called in a table, and with how many decimals it is shown."""

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Headings, and rows of as many cells."""


def markdown(table: Table) -> str:
    """Return a Markdown table whose columns line up in a terminal as well."""
    header, rows = table
    widths = [max(len(row[index]) for row in (header, *rows)) for index in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return "\n".join([line(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)])


def arms_table(arms: Sequence[ArmResult], columns: Sequence[str], baseline: str) -> Table:
    """Return a row for each arm of one scenario: medians, the seeds' least and greatest, and the ratio to one arm.

    BEST stands behind the best median of a column and those that are ALIKE, unless all of them are. Columns of which no
    arm has anything are left out, such as runs of a class that the load does not have.
    """
    columns = [column for column in columns if any(_is_there(each.figures.get(column), column) for each in arms)]
    base = next((each for each in arms if each.arm == baseline), None)
    header = ("arm", *(TITLES[column][0] for column in columns))
    best = {column: best_arms(arms, column) for column in columns}
    rows = []
    for each in arms:
        other = None if base is None or base is each else base.figures
        cells = [
            _cell(each.figures.get(column), (other or {}).get(column), column) + BEST * (each.arm in best[column])
            for column in columns
        ]
        rows.append((each.arm, *cells))
    return header, rows


def _is_there(spread: Spread | None, column: str) -> bool:
    """Say whether there is anything to tell: no runs of a class are no figure, no faults are one."""
    return spread is not None and bool(spread.high if column in _OF_A_CLASS else spread.median is not None)


def best_arms(arms: Sequence[ArmResult], figure: str) -> frozenset[str]:
    """Return whose medians of a figure are best, as far as they can be told apart; nobody's where all are alike."""
    medians = {
        each.arm: spread.median
        for each in arms
        if (spread := each.figures.get(figure)) is not None and spread.median is not None
    }
    if not medians:
        return frozenset()
    best = (max if figure in MORE_IS_BETTER else min)(medians.values())
    alike = frozenset(arm for arm, median in medians.items() if abs(median - best) <= ALIKE * abs(best))
    return alike if len(alike) < len(medians) else frozenset()


def verdicts_table(verdicts: Sequence[Verdict]) -> Table:
    """Return a row for each verdict."""
    header = ("must show", "arm", "measured", "verdict", "÷ best other")
    return header, [
        (
            " ".join(TITLES[word][0] if word in TITLES else word for word in each.claim.split(" ")),
            each.arm,
            NONE if each.value is None else _spread_text(each.value, each.low, each.high),
            _verdict(each),
            NONE if each.rival_ratio is None else f"{each.rival_ratio:.2f}× {each.rival}",
        )
        for each in verdicts
    ]


def _verdict(verdict: Verdict) -> str:
    if verdict.met:
        return MET
    if verdict.value is None:
        return "not measured"
    return MISSED if verdict.missed_by is None else f"{MISSED} by {verdict.missed_by:.2f}×"


def _spread_text(value: float, low: float | None, high: float | None) -> str:
    if low is None or high is None or low == high:
        return f"{value:.3g}"
    return f"{value:.3g} ({low:.3g}–{high:.3g})"


def _cell(spread: Spread | None, base: Spread | None, column: str) -> str:
    if spread is None or spread.median is None or spread.low is None or spread.high is None:
        return NONE
    middle, low, high = (_number(value, TITLES[column][1]) for value in (spread.median, spread.low, spread.high))
    shown = middle if spread.low == spread.high else f"{middle} ({low}–{high})"
    ratio = None if base is None else ratio_of(spread, base)
    return shown if ratio is None else f"{shown} {ratio:.2f}×"


def _number(value: float, decimals: int) -> str:
    return f"{value:,.{decimals if abs(value) < _MANY else 0}f}"


def ratio_of(spread: Spread, base: Spread) -> float | None:
    """Return the median of one ÷ other, seed by seed; None where no seed has both."""
    ratios = ratios_of(spread, base)
    return statistics.median(ratios) if ratios else None


def ratios_of(spread: Spread, base: Spread) -> list[float]:
    """Return one ÷ other of each seed that has both."""
    return [
        mine / other
        for mine, other in zip(spread.by_seed, base.by_seed, strict=False)
        if mine is not None and other is not None and other > 0
    ]
