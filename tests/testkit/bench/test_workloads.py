"""The workloads themselves."""

import pytest

from luftpause.testkit.bench.samples import FIGURES
from luftpause.testkit.bench.tables import TITLES
from luftpause.testkit.bench.workloads import OURS, TUNED, WORKLOADS, Workload
from luftpause.testkit.sim.arms import ARMS, arms_for
from luftpause.testkit.sim.scenario import load_scenario, shipped
from luftpause.testkit.sim.setting import setting_of


def test_every_scenario_belongs_to_a_workload() -> None:
    named = {scenario for workload in WORKLOADS.values() for scenario in workload.scenarios}
    assert sorted(named) == sorted(shipped())


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=list(WORKLOADS))
def test_a_workload_asks_for_what_there_is(workload: Workload) -> None:
    for scenario in workload.scenarios:
        assert set(workload.arms) <= set(arms_for(setting_of(load_scenario(scenario))))
    for claim in workload.claims:
        assert claim.scenario in workload.scenarios
        assert claim.figure in (*FIGURES, "broken_rules")
        assert claim.against is None or claim.against in workload.arms
    assert set(workload.columns) <= set(TITLES)
    assert set(OURS) & set(workload.arms)


def test_the_tuned_router_is_an_arm() -> None:
    assert TUNED in ARMS
