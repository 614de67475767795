"""From a simulated world to figures."""

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId
from luftpause.testkit.sim.agent_groups import Fan
from luftpause.testkit.sim.figures import Figures, cached_share, figures_of, prompt_cached_share, spread_of
from luftpause.testkit.sim.past import AnsweredTurn
from luftpause.testkit.sim.scenario import Scenario
from testkit.sim.worlds import crowd, family, group, world_of


def figures(scenario: Scenario, arm: str = "direct") -> Figures:
    world = world_of(scenario, arm)
    world.run_until(70.0)
    return figures_of(world.past(), scenario, 10.0, 70.0)


def test_seeds_become_a_median_with_its_spread() -> None:
    found = spread_of([3.0, 9.0, None, 4.0])
    assert (found.median, found.low, found.high) == (4.0, 3.0, 9.0)
    assert found.by_seed == (3.0, 9.0, None, 4.0)
    assert spread_of([None]).median is None


def test_a_tree_counts_as_one_run_and_one_that_does_not_end_with_its_age() -> None:
    trees = family(Fan(children=3))
    world = world_of(trees, "direct")
    world.run_until(70.0)
    found = figures_of(world.past(), trees, 10.0, 70.0)
    assert found.runs_per_min == sum(run.parent is None and run.ended_at > 10 for run in world.ended)
    assert sum(run.parent is not None for run in world.ended) > 2 * found.runs_per_min
    assert found.tree_mean_s is not None
    assert found.run_p50_s is not None
    early = figures_of(world.past(), trees, 69.9, 70.0)
    assert early.tree_mean_s is None or early.tree_mean_s < 0.1


def test_what_continuations_knew_and_found_is_their_share_of_the_cache() -> None:
    turns = [answered(0, 0), answered(100, 80), answered(100, 120)]
    assert cached_share(turns) == pytest.approx(0.9)
    assert cached_share(turns[:1]) is None
    assert prompt_cached_share(turns) == pytest.approx(200 / 600, abs=1e-4)
    assert prompt_cached_share([]) is None


def answered(known: int, cached: int) -> AnsweredTurn:
    return AnsweredTurn(
        ended_at=1.0,
        principal=ANONYMOUS_PRINCIPAL,
        caller=CallerId("c"),
        prompt_tokens=200,
        cached_tokens=cached,
        reply_tokens=10,
        known_tokens=known,
    )


def test_callers_who_want_alike_and_get_alike_are_treated_fairly() -> None:
    even = crowd(group("a", count=8), group("b", count=8))
    skewed = crowd(group("a", count=30), group("b", count=4))
    fair, unfair = figures(even), figures(skewed)
    assert fair.fairness is not None
    assert fair.fairness > 0.97
    assert unfair.fairness is not None
    assert unfair.fairness < 0.9
    assert figures(crowd(group("a", count=3))).fairness is None
