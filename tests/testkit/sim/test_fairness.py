"""Shares of the engines."""

import pytest

from luftpause.testkit.sim.fairness import entitled, fairness, jain


def test_jain_is_one_for_equals_and_a_share_for_one_who_has_all() -> None:
    assert jain([2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([]) == jain([0.0]) == 1.0


def test_nobody_is_entitled_to_more_than_it_wants_and_the_rest_is_shared() -> None:
    assert entitled(100.0, {"small": 10.0, "a": 80.0, "b": 500.0}) == {"small": 10.0, "a": 45.0, "b": 45.0}


def test_one_who_wants_little_and_gets_it_beside_a_crowd_is_treated_fairly() -> None:
    demands = {"single": 5.0, "crowd": 1000.0}
    assert fairness({"single": 5.0, "crowd": 95.0}, demands) == pytest.approx(1.0)
    assert fairness({"single": 0.5, "crowd": 99.5}, demands) < 0.65
