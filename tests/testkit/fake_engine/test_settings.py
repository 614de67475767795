"""Settings of a fake engine."""

import pytest

from luftpause.testkit.engine_model.figures import STEP_S_MIN, EngineFigures
from luftpause.testkit.fake_engine.settings import Settings, paced


def test_a_step_takes_the_time_of_a_token_and_more_with_each_other_request() -> None:
    figures = paced(EngineFigures(), 0.01, 0.002)
    assert figures.step_s + figures.decode_s == pytest.approx(0.01)
    assert figures.step_s + 3 * figures.decode_s == pytest.approx(0.014)


def test_a_token_that_takes_no_time_still_takes_a_step() -> None:
    assert paced(EngineFigures(), 0.0, 0.5).step_s == STEP_S_MIN


def test_all_times_are_sped_up() -> None:
    fast = Settings(load_s=6.0, ttft_s=3.0).sped_up(3.0)
    assert (fast.load_s, fast.ttft_s) == (2.0, 1.0)
    assert fast.figures == Settings().figures.sped_up(3.0)
