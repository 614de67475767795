"""One scenario, one arm, one seed; and what several come to."""

import msgspec
import pytest

from luftpause.testkit.sim import simulate as module
from luftpause.testkit.sim.arms import LAUNCHING_ARMS
from luftpause.testkit.sim.scenario import Scenario, load_scenario
from luftpause.testkit.sim.simulate import BrokenRuleError, simulate
from luftpause.testkit.sim.world import World
from testkit.sim.worlds import crowd


def test_runs_of_the_counted_time_become_figures() -> None:
    seen: list[tuple[float, float]] = []
    result = simulate(
        crowd(), "sglang-router", 1, checked=True, progress=lambda done, whole: seen.append((done, whole))
    )
    figures = result.figures
    assert seen[0] == (10.0, 70.0)
    assert seen[-1] == (70.0, 70.0)
    assert figures.interactive_runs_per_min > 1
    assert figures.batch_runs_per_min > figures.interactive_runs_per_min
    assert figures.interactive_p50_s is not None
    assert figures.interactive_p99_s is not None
    assert figures.interactive_p50_s <= figures.interactive_p99_s
    assert (figures.unfinished_runs, figures.failed_runs, figures.moves_per_run) == (18, 0, 0)
    assert result.took_s > 0
    assert len(result.ended) == round(figures.runs_per_min)
    assert all(10.0 < turn.ended_at <= 70.0 for turn in result.answered)


def test_a_broken_rule_is_told_with_what_shows_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_until(world: World, at: float) -> None:
        raise AssertionError(f"two turns became one at {at}")

    monkeypatch.setattr(World, "run_until", run_until)
    with pytest.raises(BrokenRuleError, match=r"crowd, arm direct, seed 3, at 0\.000 s: two turns became one"):
        module.simulate(crowd(), "direct", 3)


def test_both_policies_load_models_alike() -> None:
    """What goes on ranks before what begins, and that is no reason to load its model sooner."""
    scenario = msgspec.structs.replace(load_scenario("w8-swap"), minutes=5.0)
    loads = {arm: simulate(scenario, arm, 1).figures.loads for arm in LAUNCHING_ARMS}
    assert loads["working-set"] <= 1.1 * loads["turn-admission"], loads
    assert loads["working-set"] <= 0.5 * loads["llama-swap"], loads


def test_a_single_run_beside_a_crowd_gets_most_of_what_it_could_use_alone() -> None:
    scenario = msgspec.structs.replace(load_scenario("w4-crowd"), minutes=3.0)
    fairness = simulate(scenario, "working-set", 1).figures.fairness
    assert fairness is not None
    assert fairness > 0.92


def in_text(scenario: Scenario) -> Scenario:
    """Let no agent of a scenario have its tools called in the engine's own way, nor say that a run is over."""
    groups = tuple(msgspec.structs.replace(group, tools_in_text=True) for group in scenario.agents)
    return msgspec.structs.replace(scenario, agents=groups)


def test_runs_whose_tool_calls_nobody_sees_find_their_places_all_the_same() -> None:
    scenario = msgspec.structs.replace(load_scenario("w1-small"), minutes=2.0)
    seen = simulate(scenario, "working-set", 1, checked=True).figures
    unseen = simulate(in_text(scenario), "working-set", 1, checked=True).figures
    free = simulate(in_text(scenario), "turn-admission", 1).figures
    assert unseen.runs_per_min >= 0.95 * seen.runs_per_min
    assert unseen.moves_per_run is not None
    assert free.moves_per_run is not None
    assert unseen.moves_per_run <= 0.1 < free.moves_per_run
