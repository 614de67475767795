"""One seed of one arm over HTTP, with real processes."""

import pytest

from luftpause.testkit.bench.over_http.doors import AbsentError
from luftpause.testkit.bench.over_http.measure import measure_over_http
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.windows import Window

SHORT = Window(warmup_s=1.0, minutes=0.4, speed=8.0)


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["direct", "turn-admission"])
def test_a_scenario_is_played_against_real_processes(arm: str) -> None:
    sample = measure_over_http(Job(scenario="w6-light", arm=arm, seed=1), SHORT)
    assert sample.figure("runs_per_min")
    assert sample.figure("failed_turns") == 0
    assert sample.figure("moves_per_run") is None
    assert set(sample.curves.run_s) <= {"batch", "interactive"}


@pytest.mark.parametrize("scenario", ["w7-faults", "w7-restart", "w8-swap", "w4-rotating"])
def test_what_only_the_simulator_can_make_happen_is_not_played(scenario: str) -> None:
    with pytest.raises(AbsentError, match=scenario):
        measure_over_http(Job(scenario=scenario, arm="direct", seed=1), SHORT)
