"""Figures of an engine."""

import pytest

from luftpause.testkit.engine_model.engine import Engine
from luftpause.testkit.engine_model.figures import STEP_S_MIN, EngineFigures
from testkit.engine_model.asking import done, request, run_out


def test_an_engine_twice_as_fast_takes_half_the_time() -> None:
    figures = EngineFigures(context_s=1e-4, prefill_context_s=1e-6, request_s=0.01)
    times = []
    for each in (figures, figures.sped_up(2.0)):
        engine = Engine(each)
        for key in range(3):
            engine.submit(request(key, prompt=500, reply=20), 0.0)
        times.append(done(run_out(engine)))
    slow, fast = times
    assert {key: at * 2 for key, at in fast.items()} == pytest.approx(slow)


def test_however_fast_a_step_takes_some_time() -> None:
    assert EngineFigures().sped_up(1e12).step_s == STEP_S_MIN
