"""What no scheduler can be better than, on a handful of turns."""

from benchmarks.bounds import Use, lost, uses_of

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
    assert lost(USES, 100, 0.0, foresees=False) == (20 + 30) / 3


def test_with_foresight_who_never_comes_back_goes_first() -> None:
    assert lost(USES, 100, 0.0, foresees=True) == 20 / 3, "b is back last, and c never"
    assert lost(USES, 1000, 0.0, foresees=True) == 0


def test_what_happened_before_counts_for_nothing() -> None:
    assert lost(USES, 100, 4.0, foresees=False) == 30


def test_turns_of_a_scenario_stand_in_order_of_time() -> None:
    scenario = load_scenario("w2-coding")
    uses = uses_of(scenario, 1)
    assert uses == sorted(uses)
    begun = [use for use in uses if not use.known]
    assert len(begun) == len({use.run for use in uses})
    assert all(use.at <= scenario.warmup_s + scenario.minutes * 60 for use in begun)
