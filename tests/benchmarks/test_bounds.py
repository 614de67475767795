"""What no scheduler can be better than, on a handful of turns."""

from dataclasses import replace

from benchmarks.bounds import FirstOut, Use, lost, lost_apart, turns_of, uses_of

from luftpause.testkit.sim.plans import Leg, draw_plan
from luftpause.testkit.sim.scenario import load_scenario

USES = [
    Use(1.0, "a", 0, 40),
    Use(2.0, "b", 0, 40),
    Use(3.0, "c", 0, 40),
    Use(4.0, "a", 40, 50),
    Use(5.0, "b", 40, 50),
]


def test_who_was_there_longest_ago_goes_first() -> None:
    # c takes 20 of a, whose return takes 30 of b, whose return takes c and 10 more of it.
    assert lost(USES, 100, 0.0, FirstOut.LEAST_RECENT) == (20 + 30) / 3


def test_with_foresight_who_never_comes_back_goes_first() -> None:
    assert lost(USES, 100, 0.0, FirstOut.LAST_BACK) == 20 / 3, "b is back last, and c never"
    assert lost(USES, 1000, 0.0, FirstOut.LAST_BACK) == 0


def test_who_has_ended_goes_first_and_then_who_was_there_longest_ago() -> None:
    # b is told of first: it ends before c begins, and is all that has to go.
    uses = [
        Use(1.0, "a", 0, 40),
        Use(2.0, "b", 0, 40),
        Use(3.0, "c", 0, 40),
        Use(4.0, "a", 40, 60),
        Use(5.0, "c", 40, 50),
    ]
    assert lost(uses, 100, 0.0, FirstOut.ENDED) == 0
    assert lost(uses, 90, 0.0, FirstOut.ENDED) == 10 / 3, "c has to go for a, and is missed"
    assert lost(uses, 100, 0.0, FirstOut.LEAST_RECENT) > 0


def test_engines_apart_keep_less_than_one_with_all_their_memory() -> None:
    # a and c meet at one engine, b has the other for itself.
    assert lost_apart(USES, 2, 50, 0.0, FirstOut.LEAST_RECENT) == 30 / 3
    assert lost(USES, 100, 0.0, FirstOut.LAST_BACK) < lost_apart(USES, 2, 50, 0.0, FirstOut.LAST_BACK)


def test_what_happened_before_counts_for_nothing() -> None:
    assert lost(USES, 100, 4.0, FirstOut.LEAST_RECENT) == 30


def test_turns_of_a_scenario_stand_in_order_of_time() -> None:
    scenario = load_scenario("w2-coding")
    uses = uses_of(scenario, 1)
    assert uses == sorted(uses)
    begun = [use for use in uses if not use.known]
    assert len(begun) == len({use.run for use in uses})
    assert all(use.at <= scenario.warmup_s + scenario.minutes * 60 for use in begun)


def test_a_prompt_that_begins_anew_loses_nothing() -> None:
    scenario = load_scenario("w2-coding")
    legs = (
        Leg(100, 10, 1.0, paused=True),
        Leg(50, 10, 1.0, paused=True, rewritten=True),
        Leg(5, 10, None, paused=False),
    )
    uses = turns_of(replace(draw_plan(scenario.agents[0], 1, 0), legs=legs), 0.0, scenario)
    assert [(use.known, use.after) for use in uses] == [(0, 110), (0, 60), (60, 75)]
