"""Samples, results and a small workload for tests."""

from luftpause.testkit.bench.claims import Claim, Relation, judge
from luftpause.testkit.bench.machine import Machine
from luftpause.testkit.bench.results import WorkloadResult, arm_results
from luftpause.testkit.bench.samples import Curves, Sample
from luftpause.testkit.bench.workloads import Workload

MACHINE = Machine(system="Linux", processor="abacus", cores=2, memory_gib=8.0, python="3.11", load_before=0.5)

FASTER = Claim(
    scenario="w1", figure="runs_per_min", relation=Relation.AT_LEAST, bound=2.0, against="sglang-router-tuned"
)

SMALL = Workload(
    name="small",
    title="A small flood",
    must_show="twice as many runs",
    scenarios=("w7-slow",),
    claims=(
        Claim(
            scenario="w7-slow",
            figure="runs_per_min",
            relation=Relation.AT_LEAST,
            bound=0.5,
            against="sglang-router-tuned",
        ),
    ),
    columns=("runs_per_min", "run_p50_s"),
    arms=("direct", "sglang-router-tuned", "turn-admission"),
)


def sample(runs_per_min: float | None, *, broken: str = "", **others: float | None) -> Sample:
    """Return a seed with few figures, and the curves of a run or two."""
    curves = Curves(run_s={"batch": (1.0, 2.0)}, cached=((1, 2), (0, 0)))
    return Sample(figures={"runs_per_min": runs_per_min, **others}, curves=curves, broken=broken)


def samples(**arms: list[float | None]) -> dict[str, dict[str, list[Sample]]]:
    """Return `runs_per_min` of arms in w1; underscores stand for hyphens."""
    return {"w1": {name.replace("_", "-"): [sample(value) for value in values] for name, values in arms.items()}}


def result(**arms: list[float | None]) -> WorkloadResult:
    """Return a workload's result with one claim on ours."""
    found = samples(**arms)
    return WorkloadResult(
        workload="w1",
        engine="sim",
        commit="abc",
        when="2026-01-01T00:00:00+00:00",
        seeds=tuple(range(1, 1 + max(len(values) for values in arms.values()))),
        seconds=3.0,
        machine=MACHINE,
        arms=arm_results(found),
        verdicts=tuple(judge((FASTER,), found, ("turn-admission",), ("turn-admission",))),
        absent={"smg": "is not installed"},
        setup={},
    )
