"""Stored results at a glance: what our policy does beside other people's routers, load by load. Pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from luftpause.testkit.bench.claims import Claim
from luftpause.testkit.bench.results import ArmResult, EngineShell, WorkloadResult
from luftpause.testkit.bench.tables import MORE_IS_BETTER, NONE, TITLES, Table, markdown, ratios_of
from luftpause.testkit.bench.workloads import OURS, OWN, TUNED, WORKLOADS, Workload

POLICY: Final = OURS[-1]
"""Whose showing it is."""

FLOOD: Final = ("interactive_runs_per_min", "interactive_p50_s", "batch_runs_per_min")
"""What a load of both classes is about."""

ENGINES: Final[dict[EngineShell, str]] = {
    "sim": "simulated",
    "http": "HTTP, real routers",
    "llama": "llama.cpp, real routers",
}

_SEED: Final = "seed-"
"""How workloads begin whose claims are ties, but for their floods."""

_INTRO: Final = f"""What `{POLICY}` does ÷ what others do with the same runs and the same tools: the median of the
ratios within each seed, in brackets the least and the greatest; beside it ÷ the best other, whoever of other people's
arms does best in that very figure, by medians. The router is `{TUNED}` unless another one is named.
Of runs a minute and Jain's index more is better; of seconds and loads less. Simulated routers are models of theirs."""


class _Part(NamedTuple):
    """A scenario of a workload, as it was measured on one engine."""

    workload: Workload
    result: WorkloadResult
    arms: Mapping[str, ArmResult]
    claims: Sequence[Claim]

    @property
    def name(self) -> str:
        """What a stranger reads of it."""
        scenario = f"`{self.claims[0].scenario}`"
        if self.workload.door == "mcp":
            return f"{scenario} as sub-agents over MCP"
        return f"{scenario} {self.workload.title}" if len(self.workload.scenarios) == 1 else scenario

    @property
    def is_flood(self) -> bool:
        """Whether there are two classes, of which one could take from the other."""
        return any(claim.figure in FLOOD for claim in self.claims)

    @property
    def compares(self) -> bool:
        """Whether there is anything to compare: not where nothing may happen at all, nor where all must be alike."""
        first = self.claims[0]
        return first.bound > 0 and not (self.workload.name.startswith(_SEED) and first.figure not in FLOOD)


def at_a_glance(results: Sequence[WorkloadResult]) -> str:
    """Return both tables, with how they are read; empty where our policy was not measured."""
    parts = list(_parts(results))
    floods = [part for part in parts if part.is_flood]
    others = [part for part in parts if not part.is_flood and part.compares]
    said = [_INTRO] if floods or others else []
    if floods:
        said += ["Interactive runs beside batch:", markdown(_floods(floods))]
    if others:
        said += ["Other loads, by what each is about:", markdown(_others(others))]
    return "\n\n".join(said)


def _parts(results: Sequence[WorkloadResult]) -> Iterator[_Part]:
    """Return each scenario once for each engine and door, in the order of the workloads."""
    seen = set()
    for workload in WORKLOADS.values():
        own = [result for result in results if result.workload == workload.name]
        for scenario in workload.scenarios:
            for result in sorted(own, key=lambda each: list(ENGINES).index(each.engine)):
                arms = {arm.arm: arm for arm in result.arms if arm.scenario == scenario}
                claims = [claim for claim in workload.claims if claim.scenario == scenario]
                key = scenario, result.engine, workload.door
                if POLICY in arms and claims and key not in seen:
                    seen.add(key)
                    yield _Part(workload, result, arms, claims)


def _floods(parts: Sequence[_Part]) -> Table:
    header = ["load", "engine"]
    for figure in FLOOD:
        header += [TITLES[figure][0], "÷ best other"]
    rows: list[tuple[str, ...]] = []
    for part in parts:
        cells = [cell for figure in FLOOD for cell in _cells(part, part.claims[0].against, figure)]
        rows.append((part.name, ENGINES[part.result.engine], *cells))
    return tuple(header), rows


def _others(parts: Sequence[_Part]) -> Table:
    rows: list[tuple[str, ...]] = []
    for part in parts:
        claim = part.claims[0]
        cells = _cells(part, claim.against, claim.figure)
        rows.append((part.name, ENGINES[part.result.engine], TITLES[claim.figure][0], *cells))
    return ("load", "engine", "figure", "÷ router", "÷ best other"), rows


def _cells(part: _Part, against: str | None, figure: str) -> tuple[str, str]:
    """Return ours ÷ the router's, and ÷ that of the best other; where nothing is compared, the figures themselves."""
    ours = part.arms[POLICY].figures.get(figure)
    if ours is None or ours.median is None:
        return NONE, NONE
    rivals = {
        name: spread.median
        for name, arm in part.arms.items()
        if name not in OWN and (spread := arm.figures.get(figure)) is not None and spread.median is not None
    }
    best = (max if figure in MORE_IS_BETTER else min)(rivals, key=rivals.__getitem__, default="")
    if against is None:
        return f"{ours.median:.3g}", f"{rivals[best]:.3g} {best}" if best else NONE
    router = part.arms[against].figures[figure] if against in part.arms else None
    ratios = [] if router is None else ratios_of(ours, router)
    of_router = f"{_spread(ratios)}{'' if against == TUNED else f' {against}'}" if ratios else NONE
    return of_router, f"{ours.median / rivals[best]:.2f}× {best}" if best and rivals[best] else NONE


def _spread(ratios: Sequence[float]) -> str:
    middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
    bounds = "" if f"{low:.2f}" == f"{high:.2f}" else f" ({low:.2f}–{high:.2f})"
    return f"{middle:.2f}×{bounds}"
