"""What a policy is worth piece by piece: what becomes of a load without each of them, beyond what chance does. Pure."""

from collections.abc import Iterator, Mapping
from math import log
from typing import Final

from luftpause.testkit.bench.results import ArmResult, WorkloadResult
from luftpause.testkit.bench.tables import MORE_IS_BETTER, NONE, TITLES, Table, ratio_of
from luftpause.testkit.bench.workloads import WORKLOADS
from luftpause.testkit.sim.figures import Spread

WITHOUT: Final = "-without-"
"""Between a policy and the piece that an arm of it lacks."""

LEAST: Final = 0.05
"""By so much medians must differ, at least."""

SHOWN: Final = 4
"""Of more differences only the largest are told."""

TOLD: Final = (
    f"A difference is told where no seed with the piece reaches one without it and the medians differ by more than "
    f"{LEAST:.0%}; × is without it ÷ with it."
)


def pieces_table(result: WorkloadResult) -> Table | None:
    """Return for each piece what is worse without it, and what is better; None where no arm lacks one."""
    by_scenario: dict[str, dict[str, ArmResult]] = {}
    for arm in result.arms:
        by_scenario.setdefault(arm.scenario, {})[arm.arm] = arm
    workload = WORKLOADS.get(result.workload)
    figures = workload.columns if workload is not None else tuple(TITLES)
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(arm.arm for arm in result.arms if WITHOUT in arm.arm):
        found = sorted(_differences(name, by_scenario, figures), key=lambda each: -abs(log(each[1])))
        worse, better = ([text for text, _, is_worse in found if is_worse is wanted] for wanted in (True, False))
        rows.append((name.partition(WITHOUT)[2], _listed(worse), _listed(better)))
    return (("piece", "worse without it", "better without it"), rows) if rows else None


def _differences(
    name: str, by_scenario: Mapping[str, Mapping[str, ArmResult]], figures: tuple[str, ...]
) -> Iterator[tuple[str, float, bool]]:
    """Return each difference in words, as a ratio, and whether it is one for the worse."""
    whole = name.partition(WITHOUT)[0]
    for scenario, arms in by_scenario.items():
        for figure in figures if name in arms and whole in arms else ():
            mine, other = arms[name].figures.get(figure), arms[whole].figures.get(figure)
            ratio = None if mine is None or other is None or not _apart(mine, other) else ratio_of(mine, other)
            if ratio and abs(ratio - 1) > LEAST:
                yield f"{scenario} {TITLES[figure][0]} {ratio:.2f}×", ratio, (ratio < 1) == (figure in MORE_IS_BETTER)


def _apart(one: Spread, other: Spread) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low


def _listed(texts: list[str]) -> str:
    more = len(texts) - SHOWN
    return "; ".join(texts[:SHOWN]) + (f"; {more} more" if more > 0 else "") or NONE
