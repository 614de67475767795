"""The workloads themselves."""

import pytest

from luftpause.testkit.bench.over_http.doors import HTTP_ARMS
from luftpause.testkit.bench.results import EngineShell
from luftpause.testkit.bench.samples import FIGURES
from luftpause.testkit.bench.tables import TITLES
from luftpause.testkit.bench.workloads import OURS, TUNED, WORKLOADS, Workload
from luftpause.testkit.sim.arms import ARMS, WITHOUT, arms_for
from luftpause.testkit.sim.scenario import load_scenario, shipped
from luftpause.testkit.sim.setting import setting_of


def test_every_scenario_belongs_to_a_workload() -> None:
    runs = [workload for workload in WORKLOADS.values() if workload.door != "decide"]
    named = {scenario for workload in runs for scenario in workload.scenarios}
    assert sorted(named) == sorted(shipped())


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=list(WORKLOADS))
def test_a_workload_asks_for_what_there_is(workload: Workload) -> None:
    calls = ("call_p50_ms", "call_p99_ms", "calls_per_s")
    for scenario in workload.scenarios:
        if workload.door != "decide":
            assert set(workload.arms) <= {*arms_for(setting_of(load_scenario(scenario))), *WITHOUT}
    for claim in workload.claims:
        assert claim.scenario in workload.scenarios
        assert claim.figure in (calls if workload.door == "decide" else (*FIGURES, "broken_rules"))
        assert claim.against is None or claim.against in workload.arms
    assert set(workload.columns) <= set(TITLES)
    assert set(OURS) & set(workload.arms)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=list(WORKLOADS))
@pytest.mark.parametrize("engine", ["http", "llama"])
def test_what_is_asked_over_http_exists_there_and_whom_claims_compare_with_is_among_it(
    workload: Workload, engine: EngineShell
) -> None:
    arms = workload.arms_on(engine)
    if engine in workload.engines:
        assert set(arms) <= set(HTTP_ARMS)
        assert {claim.against for claim in workload.claims if claim.against is not None} <= set(arms)
        assert workload.window(engine).real is (engine == "llama")


@pytest.mark.parametrize(
    ("engine", "names", "most_s"), [("http", ("w1", "w3", "w6"), 660), ("llama", ("w1-small",), 370)]
)
def test_what_is_measured_in_real_time_takes_as_long_as_people_wait(
    engine: EngineShell, names: tuple[str, ...], most_s: float
) -> None:
    """Engines and doors start anew for each measurement, which takes three seconds more."""
    seconds = 0.0
    for workload in (WORKLOADS[name] for name in names):
        window = workload.window(engine)
        each = window.until_s / window.pace + 3
        seconds += each * workload.seeds * len(workload.scenarios) * len(workload.arms_on(engine))
    assert most_s / 2 < seconds < most_s


def test_the_tuned_router_is_an_arm() -> None:
    assert TUNED in ARMS
