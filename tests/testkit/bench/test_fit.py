"""Engine figures from answers."""

from dataclasses import replace

import pytest

from luftpause.testkit.bench.fit import Probe, error_of, fitted
from luftpause.testkit.engine_model.engine import Engine
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.engine_model.sequence import Request

TRUE = EngineFigures(
    step_s=0.01,
    decode_s=0.002,
    prefill_tps=500.0,
    context_s=1e-6,
    prefill_context_s=2e-6,
    request_s=0.004,
    kv_tokens=16_384,
)


def reply(steps: int, beside: int, context: float) -> Probe:
    seconds = steps * (TRUE.step_s + beside * TRUE.decode_s + context * TRUE.context_s)
    return Probe(seconds=seconds, steps=steps, beside=beside, context=context)


def prompt(tokens: int, known: int) -> Probe:
    before = tokens * (known + tokens / 2)
    seconds = TRUE.step_s + tokens / TRUE.prefill_tps + before * TRUE.prefill_context_s + TRUE.request_s
    return Probe(seconds=seconds, steps=1, prefilled=tokens, before=before, prompts=1)


PROBES = [prompt(tokens, known) for tokens in (32, 64, 256, 1024) for known in (0, 300)]
PROBES += [reply(40, beside, beside * context) for beside in (1, 2, 4) for context in (50.0, 1500.0)]


def test_an_engine_that_is_as_the_model_is_found_again() -> None:
    found, residual = fitted(PROBES, EngineFigures(kv_tokens=16_384))
    for name in ("step_s", "decode_s", "prefill_tps", "context_s", "prefill_context_s", "request_s"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=1e-5)
    assert found.kv_tokens == 16_384
    assert residual < 1e-6


def test_what_was_held_up_by_something_else_is_left_out() -> None:
    held_up = replace(PROBES[0], seconds=PROBES[0].seconds * 9)
    found, _ = fitted([*PROBES, *PROBES, held_up], EngineFigures(kv_tokens=16_384))
    assert found.step_s == pytest.approx(TRUE.step_s, rel=1e-5)
    assert found.prefill_tps == pytest.approx(TRUE.prefill_tps, rel=1e-5)


def test_the_model_takes_for_a_prompt_what_the_fit_says() -> None:
    engine = Engine(TRUE)
    engine.submit(Request(key=1, prompt=(("a", 300),), reply_tokens=1, reply_tokens_max=1), 0.0)
    assert engine.next_at == pytest.approx(prompt(300, 0).seconds)


def test_no_figure_is_below_nothing() -> None:
    found, _ = fitted([Probe(seconds=1.0, steps=1, prefilled=100), Probe(seconds=0.5, steps=10, beside=1)], TRUE)
    assert min(found.step_s, found.decode_s, found.context_s, found.prefill_context_s, found.request_s) >= 0


def test_an_error_is_a_share_of_what_was_measured() -> None:
    assert error_of(11.0, 10.0) == pytest.approx(0.1)
    assert error_of(9.0, 10.0) == pytest.approx(0.1)
    assert error_of(None, 10.0) is error_of(1.0, None) is error_of(1.0, 0.0) is None
