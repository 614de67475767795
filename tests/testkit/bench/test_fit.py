"""Engine figures from answers."""

import pytest

from luftpause.testkit.bench.fit import Probe, error_of, fitted
from luftpause.testkit.engine_model.figures import EngineFigures

TRUE = EngineFigures(step_s=0.01, decode_s=0.002, prefill_tps=500.0, context_s=1e-6, kv_tokens=16_384)


def answer(steps: int, beside: int, prefilled: int, context: float) -> Probe:
    seconds = steps * (TRUE.step_s + beside * TRUE.decode_s + context * TRUE.context_s) + prefilled / TRUE.prefill_tps
    return Probe(seconds=seconds, steps=steps, beside=beside, prefilled=prefilled, context=context)


def test_an_engine_that_is_as_the_model_is_found_again() -> None:
    probes = [answer(1, 0, tokens, 0.0) for tokens in (64, 256, 1024)]
    probes += [answer(40, beside, 0, beside * context) for beside in (1, 2, 4) for context in (50.0, 1500.0)]
    found = fitted(probes, EngineFigures(kv_tokens=16_384))
    assert found.step_s == pytest.approx(TRUE.step_s, rel=1e-6)
    assert found.decode_s == pytest.approx(TRUE.decode_s, rel=1e-6)
    assert found.prefill_tps == pytest.approx(TRUE.prefill_tps, rel=1e-6)
    assert found.context_s == pytest.approx(TRUE.context_s, rel=1e-6)
    assert found.kv_tokens == 16_384


def test_no_figure_is_below_nothing() -> None:
    found = fitted([Probe(seconds=1.0, steps=1, prefilled=100), Probe(seconds=0.5, steps=10, beside=1)], TRUE)
    assert min(found.step_s, found.decode_s, found.context_s) >= 0


def test_an_error_is_a_share_of_what_was_measured() -> None:
    assert error_of(11.0, 10.0) == pytest.approx(0.1)
    assert error_of(9.0, 10.0) == pytest.approx(0.1)
    assert error_of(None, 10.0) is error_of(1.0, None) is error_of(1.0, 0.0) is None
