"""A scenario's runs as sub-agents over MCP."""

import pytest

from luftpause.testkit.bench.over_http.measure import UNSEEN_OVER_MCP, measure_over_http
from luftpause.testkit.bench.over_http.sub_agents import habits_of
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.fake_engine.markers import read_orders
from luftpause.testkit.sim.plans import draw_plan
from luftpause.testkit.sim.scenario import load_scenario

W1 = load_scenario("w1")


@pytest.mark.parametrize("number", range(4))
def test_a_planned_run_is_a_task_of_its_length_with_its_orders(number: int) -> None:
    plan = draw_plan(W1.agents[1], 1, number)
    habits = habits_of(plan, "m")
    orders = read_orders(habits.task)
    assert (orders.tool_rounds, orders.tokens) == (len(plan.legs) - 1, plan.legs[-1].reply_tokens)
    assert [name for name, _ in orders.arguments] == ["query"]
    assert len(habits.task) / 4 == pytest.approx(plan.legs[0].new_tokens, abs=2)
    assert (habits.service_class, habits.model, habits.max_tokens) == ("interactive", "m", 256)
    assert habits.tool_calls > len(plan.legs) - 1


@pytest.mark.slow
def test_sub_agents_are_played_through_our_own_runtime() -> None:
    job = Job(scenario="w6-light", arm="turn-admission", seed=1, door="mcp")
    sample = measure_over_http(job, Window(warmup_s=1.0, minutes=0.6, speed=4.0))
    assert sample.figure("runs_per_min")
    assert sample.figure("failed_runs") == 0
    assert all(sample.figure(name) is None for name in UNSEEN_OVER_MCP)
    assert set(sample.curves.run_s) <= {"batch", "interactive"}


@pytest.mark.slow
def test_a_fan_out_is_spawned_at_once_and_over_when_its_last_child_is() -> None:
    job = Job(scenario="seed-fanout", arm="turn-admission", seed=1, door="mcp")
    sample = measure_over_http(job, Window(warmup_s=0.0, minutes=1.5, speed=6.0))
    tree_s, runs_per_min = sample.figure("tree_mean_s"), sample.figure("runs_per_min")
    assert tree_s is not None
    assert tree_s > 2.0
    assert runs_per_min
    assert sample.figure("failed_runs") == 0
