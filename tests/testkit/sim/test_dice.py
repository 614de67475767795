"""Draws by name."""

import statistics

import pytest

from luftpause.testkit.sim.dice import Dice


def test_a_name_always_draws_the_same_and_another_name_something_else() -> None:
    first = [Dice("run 1").unit() for _ in range(3)]
    assert first == [first[0]] * 3
    assert first[0] == pytest.approx(0.477926483300929, abs=0.0)
    assert Dice("run 2").unit() != first[0]


def test_draws_stay_in_their_range_and_fill_it_evenly() -> None:
    dice = Dice("even")
    units = [dice.unit() for _ in range(5000)]
    assert 0 < min(units) < 0.01 < 0.99 < max(units) < 1
    assert statistics.fmean(units) == pytest.approx(0.5, abs=0.02)
    assert {dice.whole(3, 6) for _ in range(200)} == {3, 4, 5, 6}
    assert dice.whole(7, 7) == 7


def test_times_have_the_median_and_the_mean_that_were_asked_for() -> None:
    dice = Dice("times")
    assert statistics.median(dice.log_normal(2.0, 0.8) for _ in range(5000)) == pytest.approx(2.0, rel=0.1)
    assert dice.log_normal(2.0, 0.0) == pytest.approx(2.0)
    assert statistics.fmean(dice.exponential(3.0) for _ in range(5000)) == pytest.approx(3.0, rel=0.1)
