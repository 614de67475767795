"""Steps in closed form."""

import random

import pytest

from luftpause.testkit.engine_model.stretch import Stretch


def test_each_step_takes_longer_by_the_same_amount() -> None:
    stretch = Stretch(10.0, 4, 1.0, 0.5)
    assert [stretch.at(steps) for steps in range(5)] == [10.0, 11.0, 12.5, 14.5, 17.0]
    assert stretch.ends_at == 17.0
    assert stretch.cut(2).ends_at == 12.5


@pytest.mark.parametrize("growth_s", [0.0, 1e-9, 0.01, 3.0])
def test_the_end_of_the_step_under_way_is_found_at_any_instant(growth_s: float) -> None:
    dice = random.Random(1)
    stretch = Stretch(dice.uniform(0, 1e6), 200, 0.0375, growth_s)
    ends = [stretch.at(steps) for steps in range(201)]
    for now in [*ends, *(dice.uniform(ends[0], ends[-1]) for _ in range(500))]:
        expected = next(steps for steps in range(1, 201) if ends[steps] >= now)
        assert stretch.step_end_after(now) == expected
        assert stretch.last_end(now) == max(end for end in ends if end <= now)


def test_a_single_step_and_what_is_long_over_end_where_they_end() -> None:
    assert Stretch(5.0, 1, 2.0, 0.0).step_end_after(5.5) == 1
    assert Stretch(5.0, 1, 2.0, 0.0).last_end(5.5) == 5.0
    assert Stretch(5.0, 3, 2.0, 0.0).step_end_after(99.0) == 3
