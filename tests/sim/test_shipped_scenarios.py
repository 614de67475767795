"""What the shipped scenarios show, as directions: figures are the model's own, and none is asserted."""

import statistics
from collections.abc import Callable

import msgspec
import pytest

from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.testkit.bench.workloads import OURS
from luftpause.testkit.sim import arms
from luftpause.testkit.sim.admission import TurnAdmission
from luftpause.testkit.sim.arms import arms_for
from luftpause.testkit.sim.figures import Figures
from luftpause.testkit.sim.pool import Arm, Pool
from luftpause.testkit.sim.scenario import load_scenario, shipped
from luftpause.testkit.sim.setting import Setting, setting_of
from luftpause.testkit.sim.simulate import simulate

SEEDS = (1, 2, 3)


def figures(name: str, arm: str, seed: int, minutes: float) -> Figures:
    scenario = msgspec.structs.replace(load_scenario(name), minutes=minutes)
    return simulate(scenario, arm, seed).figures


def with_limits(limits: WorkingSetLimits) -> Callable[[Pool, Setting, bool], Arm]:
    """Return how an arm is made with a piece of its policy taken away."""
    return lambda pool, setting, checked: TurnAdmission(pool, setting, Limits(working_set=limits), checked=checked)


PROVED = (
    "w1",
    "w1-long",
    "w1-strangers",
    "w3-deep",
    "w7-faults",
    "w7-restart",
    "w7-slow",
    "w7-stale",
    "w7-worst",
    "w8-swap",
)
"""Small enough to prove every state of."""


def arms_of(name: str) -> tuple[str, ...]:
    """Return our arms, which have rules to break, and for two scenarios the others, which have few."""
    able = arms_for(setting_of(load_scenario(name)))
    return able if name in ("w3-deep", "w8-swap") else tuple(arm for arm in able if arm in OURS)


@pytest.mark.parametrize(("name", "arm"), [(name, arm) for name in PROVED for arm in arms_of(name)])
def test_no_scenario_breaks_a_rule(name: str, arm: str) -> None:
    scenario = msgspec.structs.replace(load_scenario(name), minutes=0.5, warmup_s=30.0)
    figures = simulate(scenario, arm, 7, checked=True).figures
    assert figures.batch_runs_per_min + figures.interactive_runs_per_min > 0


@pytest.mark.parametrize("name", [name for name in shipped() if name not in PROVED])
def test_what_is_too_large_to_be_proved_goes_on_all_the_same(name: str) -> None:
    scenario = msgspec.structs.replace(load_scenario(name), minutes=0.5)
    assert simulate(scenario, "turn-admission", 7).figures.prompt_cached_share is not None, "no turn was answered"


def test_where_few_answers_are_long_less_is_pushed_out_once_they_are_charged_as_they_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pushed_out = dict[bool, int]()
    for corrects in (True, False):
        monkeypatch.setitem(arms._MAKERS, "working-set", with_limits(WorkingSetLimits(corrections=corrects)))
        seen = [figures("w1-long", "working-set", seed, 3.0) for seed in SEEDS]
        pushed_out[corrects] = sum(int(each.reprefilled_tokens_per_run or 0) for each in seen)
    assert pushed_out[True] < pushed_out[False]


def test_in_a_flood_admission_helps_the_interactive_runs_and_costs_the_batch_ones_little() -> None:
    pairs = [
        (figures("w1", "turn-admission", seed, 4.0), figures("w1", "sglang-router-tuned", seed, 4.0)) for seed in SEEDS
    ]
    faster = [ours.interactive_runs_per_min / theirs.interactive_runs_per_min for ours, theirs in pairs]
    batch = [ours.batch_runs_per_min / theirs.batch_runs_per_min for ours, theirs in pairs]
    assert statistics.median(faster) > 1.05
    assert statistics.median(batch) > 0.9


def test_at_light_load_the_arms_that_keep_a_run_where_it_is_tie() -> None:
    pairs = [
        (figures("w6-light", "turn-admission", seed, 2.0), figures("w6-light", "sglang-router", seed, 2.0))
        for seed in SEEDS
    ]
    ours = statistics.fmean(pair[0].batch_runs_per_min for pair in pairs)
    theirs = statistics.fmean(pair[1].batch_runs_per_min for pair in pairs)
    assert ours == pytest.approx(theirs, rel=0.02)


@pytest.mark.parametrize("seed", SEEDS)
def test_where_models_swap_ours_loads_half_as_often_and_nobody_starves(seed: int) -> None:
    ours, theirs = (figures("w8-swap", arm, seed, 15.0) for arm in ("turn-admission", "llama-swap"))
    assert ours.loads <= theirs.loads / 2
    assert ours.interactive_runs_per_min > theirs.interactive_runs_per_min
    assert ours.batch_runs_per_min > theirs.batch_runs_per_min
    assert ours.longest_turn_s is not None
    assert ours.longest_turn_s < 90.0
