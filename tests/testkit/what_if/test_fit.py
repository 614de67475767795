"""Engine figures from a log."""

import msgspec
import pytest

from core.scheduling.builders import probed
from luftpause.core.model.ids import ModelName
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.what_if.extract import extract
from luftpause.testkit.what_if.fit import as_given, fit
from testkit.sim.worlds import crowd
from testkit.what_if.recorded import declared, log_of, recorded, turn

MODEL = ModelName("simulated")
OTHER = EngineFigures(step_s=0.02, decode_s=0.002, prefill_tps=900.0, kv_tokens=1000)


def test_the_figures_of_the_engine_that_made_the_log_are_found() -> None:
    made = crowd(kv_tokens=100_000).engine
    (found,) = fit(extract(recorded(crowd(kv_tokens=100_000), 1.0)), OTHER, {MODEL: 500})
    figures = found.figures
    assert figures.step_s == pytest.approx(made.step_s, rel=0.15)
    assert figures.decode_s == pytest.approx(made.decode_s, rel=0.15)
    assert figures.prefill_tps == pytest.approx(made.prefill_tps, rel=0.15)
    assert found.error is not None
    assert found.error < 0.05
    assert found.rows > 100
    assert (found.replicas, found.models) == (("replica-0", "replica-1"), (MODEL,))


def test_turns_one_after_the_other_scale_a_step_and_show_the_prefill_rate() -> None:
    told = [*declared()]
    for number in range(20):
        prompt = 1000 + 100 * number
        took = 2 * (0.05 + prompt / 5000)  # the answer takes as long as what comes before it
        told += turn(f"{number}", f"r{number}", number * 10.0, took, (prompt, int(took / 2 / 0.05) + 1, 0))
    (found,) = fit(extract(log_of(*told)), OTHER, {ModelName("m"): 100})
    assert set(found.fitted) == {"step_s", "decode_s", "prefill_tps", "kv_tokens"}
    assert found.figures.step_s / found.figures.decode_s == pytest.approx(10.0, rel=0.01)
    assert found.figures.step_s + found.figures.decode_s == pytest.approx(0.05, rel=0.1)
    assert found.figures.prefill_tps == pytest.approx(5000, rel=0.1)


def test_answers_that_came_as_a_whole_count_from_their_placement() -> None:
    told = [*declared()]
    for number in range(20):
        at, reply = number * 10.0, 20 + number
        arrival, first, last = turn(f"{number}", f"r{number}", at, 1.0, (10, reply, 0))
        end = at + 0.03 * reply
        told += [arrival, (end, first[1]), (end, last[1])]
    (found,) = fit(extract(log_of(*told)), OTHER, {})
    assert found.figures.step_s + found.figures.decode_s == pytest.approx(0.03, rel=0.1)


def test_too_few_turns_change_nothing_but_the_size() -> None:
    trace = extract(log_of(*declared(), *turn("1", "r", 0.0, 1.0, (4000, 10, 0))))
    (found,) = fit(trace, OTHER, {ModelName("m"): 4100})
    assert found.figures == msgspec.structs.replace(OTHER, kv_tokens=4400)
    assert (found.fitted, found.error) == (("kv_tokens",), None)


def test_a_limit_that_was_hit_again_and_again_is_the_engines() -> None:
    full = [(0.0, probed("a", 4, 2))] * 3
    trace = extract(log_of(*declared(), *full, *turn("1", "r", 0.0, 1.0)))
    assert fit(trace, OTHER, {})[0].figures.max_running == 4
    trace = extract(log_of(*declared(), *full, (0.0, probed("a", 5, 0)), *turn("1", "r", 0.0, 1.0)))
    assert fit(trace, OTHER, {})[0].figures.max_running == OTHER.max_running


def test_replicas_of_other_models_are_fitted_apart() -> None:
    told = [*declared("m"), *declared("n", name="b"), *turn("1", "r", 0.0, 1.0)]
    assert [each.models for each in as_given(extract(log_of(*told)), OTHER)] == [("m",), ("n",)]
    assert [each.replicas for each in fit(extract(log_of(*told)), OTHER, {})] == [("a",), ("b",)]
