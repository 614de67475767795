"""The engine model: each rule of it, and that skipping steps changes nothing."""

import random
from typing import Literal

import msgspec
import pytest

from luftpause.testkit.engine_model.engine import Engine, Outcome, Progress
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.engine_model.sequence import Request
from testkit.engine_model.asking import done, first, request, run_out

EXACT = EngineFigures(step_s=1.0, decode_s=0.5, prefill_tps=100.0, kv_tokens=10_000, chunk_tokens=200, reserve=1.0)


def test_a_lone_request_takes_as_long_as_the_formula_says() -> None:
    engine = Engine(EXACT)
    engine.submit(request(1, prompt=300, reply=4), 0.0)
    seen = run_out(engine)
    # 200 and 100 prompt tokens in a step each, the second of which makes the first token; then three decoding steps.
    assert first(seen) == {1: (1.0 + 2.0) + (1.0 + 1.0)}
    assert done(seen) == {1: 5.0 + 3 * (1.0 + 0.5)}
    assert engine.next_at is None


def test_context_makes_decoding_slower() -> None:
    engine = Engine(EngineFigures(step_s=1.0, decode_s=0.0, prefill_tps=1e9, context_s=0.01, kv_tokens=10_000))
    engine.submit(request(1, prompt=100, reply=4), 0.0)
    assert done(run_out(engine))[1] == pytest.approx(1.0 + 3 * 1.0 + 0.01 * (101 + 102 + 103))


def test_a_prompt_token_takes_longer_the_more_stands_before_it_and_a_request_takes_something_by_itself() -> None:
    engine = Engine(msgspec.structs.replace(EXACT, prefill_context_s=0.001, request_s=0.25))
    engine.submit(request(1, prompt=160, reply=16, run="r"), 0.0)
    assert first(run_out(engine)) == {1: pytest.approx(1.0 + 1.6 + 160 * 80 * 0.001 + 0.25)}
    engine.submit(request(2, prompt=200, reply=1, run="r"), 100.0)
    assert first(run_out(engine)) == {2: pytest.approx(101.0 + 0.24 + 24 * (176 + 12) * 0.001 + 0.25)}


def test_a_prompt_in_two_chunks_is_one_request() -> None:
    engine = Engine(msgspec.structs.replace(EXACT, request_s=0.25))
    engine.submit(request(1, prompt=300, reply=1), 0.0)
    assert first(run_out(engine)) == {1: pytest.approx(3.0 + 2.0 + 0.25)}


def test_a_prefill_slows_those_who_decode_and_shares_the_budget_with_them() -> None:
    engine = Engine(EXACT)
    engine.submit(request(1, prompt=100, reply=50), 0.0)
    seen = run_out(engine, 2.0)
    assert first(seen) == {1: 2.0}
    engine.submit(request(2, prompt=500, reply=1), 2.0)
    assert engine.next_at == 3.5, "the step under way ends first"
    seen = run_out(engine, 13.0)
    # 199, 199 and 102 tokens beside one decode: 3.49, 3.49 and 2.52 s.
    assert first(seen)[2] == pytest.approx(3.5 + 3.49 + 3.49 + 2.52)


def test_a_conversation_that_comes_back_computes_only_what_is_new() -> None:
    engine = Engine(EXACT)
    engine.submit(request(1, prompt=160, reply=16, run="r"), 0.0)
    run_out(engine)
    engine.submit(request(2, prompt=200, reply=1, run="r"), 100.0)
    seen = run_out(engine)
    assert [progress.cached_tokens for _, progress in seen] == [176, 176]
    assert first(seen) == {2: 100.0 + 1.0 + 0.24}
    assert engine.totals.cached_tokens == 176


def test_the_last_token_of_a_prompt_that_is_all_there_is_computed_again() -> None:
    engine = Engine(EXACT)
    for key in (1, 2):
        engine.submit(request(key, prompt=160, reply=1, run="r"), 0.0)
        seen = run_out(engine)
    assert seen[0][1].cached_tokens == 159


def test_a_system_prompt_is_computed_once_for_all_runs() -> None:
    engine = Engine(EXACT)
    engine.submit(request(1, prompt=200, reply=1, system=160), 0.0)
    engine.submit(request(2, prompt=200, reply=1, system=160), 50.0)
    assert [progress.cached_tokens for _, progress in run_out(engine)][::2] == [0, 160]


def test_who_does_not_fit_waits_and_holds_up_those_behind() -> None:
    engine = Engine(EngineFigures(step_s=1.0, kv_tokens=1000, reserve=1.0))
    engine.submit(request(1, prompt=500, reply=100), 0.0)
    engine.submit(request(2, prompt=500, reply=100), 0.0)
    engine.submit(request(3, prompt=10, reply=1), 0.0)
    seen = run_out(engine, 60.0)
    assert engine.gauges(60.0) == (1, 2)
    seen += run_out(engine)
    ended = done(seen)
    assert ended[1] < first(seen)[2] <= first(seen)[3]


def test_no_more_requests_run_than_there_are_places() -> None:
    engine = Engine(EngineFigures(max_running=2))
    for key in range(3):
        engine.submit(request(key, reply=20), 0.0)
    run_out(engine, 0.1)
    assert engine.gauges(0.1) == (2, 1)


def test_an_engine_that_looks_at_priorities_takes_the_urgent_first() -> None:
    figures = EngineFigures(max_running=1, queue="priority")
    engine = Engine(figures)
    engine.submit(request(1, priority=1, reply=20), 0.0)
    engine.submit(request(2, priority=1), 0.0)
    engine.submit(request(3, priority=0), 0.01)
    ended = done(run_out(engine))
    assert sorted(ended, key=lambda key: ended[key]) == [1, 3, 2]


def test_without_memory_the_youngest_goes_back_and_loses_its_own_kv() -> None:
    engine = Engine(EngineFigures(kv_tokens=1024, reserve=0.0, page_tokens=16))
    engine.submit(request(1, prompt=400, reply=300), 0.0)
    engine.submit(request(2, prompt=400, reply=300), 0.0)
    seen = run_out(engine)
    assert engine.totals.retractions == 1
    ended = done(seen)
    assert ended[1] < ended[2]
    assert engine.totals.generated_tokens == 600, "what was said is not said again"
    assert engine.totals.prefilled_tokens > 800, "but computed again"
    assert [progress.outcome for _, progress in seen].count(Outcome.FIRST_TOKEN) == 2


def test_without_memory_an_engine_that_looks_at_priorities_takes_the_least_urgent_back() -> None:
    engine = Engine(EngineFigures(kv_tokens=1024, reserve=0.0, page_tokens=16, queue="priority"))
    engine.submit(request(1, prompt=400, reply=300, priority=1), 0.0)
    engine.submit(request(2, prompt=400, reply=300), 0.0)
    ended = done(run_out(engine))
    assert engine.totals.retractions == 1
    assert ended[2] < ended[1]


def test_an_abort_frees_its_memory_when_the_step_ends() -> None:
    engine = Engine(EngineFigures(kv_tokens=1000, reserve=1.0, step_s=1.0))
    engine.submit(request(1, prompt=500, reply=400), 0.0)
    engine.submit(request(2, prompt=500, reply=100), 0.0)
    run_out(engine, 10.0)
    engine.abort(1, 10.5)
    seen = run_out(engine)
    assert done(seen).keys() == {2}
    assert first(seen)[2] < 13.0
    engine.abort(99, 100.0)
    assert engine.open_keys() == []


def test_an_abort_in_the_queue_lets_those_behind_go_on() -> None:
    engine = Engine(EngineFigures(kv_tokens=1000, reserve=1.0, step_s=1.0))
    engine.submit(request(1, prompt=500, reply=400), 0.0)
    engine.submit(request(2, prompt=500, reply=100), 0.0)
    engine.submit(request(3, prompt=10, reply=1), 0.0)
    run_out(engine, 10.0)
    engine.abort(2, 10.5)
    seen = run_out(engine)
    assert done(seen).keys() == {1, 3}
    assert done(seen)[3] < 14.0


def test_a_request_that_dies_gives_back_what_it_had() -> None:
    engine = Engine(EXACT)
    engine.submit(request(1, prompt=160, reply=50, dies_after=16, run="r"), 0.0)
    seen = run_out(engine)
    assert [progress.outcome for _, progress in seen] == [Outcome.FIRST_TOKEN, Outcome.DIED]
    assert engine.kv_used == 160, "its prompt is kept, its answer is not"


def test_an_engine_that_visits_each_step_tells_of_every_token_once() -> None:
    engine = Engine(EngineFigures(kv_tokens=1024, reserve=0.0), each_step=True)
    for key in (1, 2):
        engine.submit(request(key, prompt=400, reply=300), 0.0)
    seen = [progress for _, progress in run_out(engine)]
    assert engine.totals.retractions == 1
    for key in (1, 2):
        own = [progress for progress in seen if progress.key == key]
        assert [progress.made for progress in own[:-1]] == list(range(1, 301))
        assert own[0].outcome is Outcome.FIRST_TOKEN
        assert {progress.outcome for progress in own[1:-1]} == {Outcome.TOKEN}
        assert (own[-1].outcome, own[-1].made) == (Outcome.DONE, 300)


@pytest.mark.parametrize("each_step", [False, True])
def test_who_stalls_keeps_place_and_memory_and_leaves_the_time_to_the_others(*, each_step: bool) -> None:
    engine = Engine(EngineFigures(max_running=2, kv_tokens=1000, step_s=1.0, decode_s=0.0), each_step=each_step)
    engine.submit(request(1, prompt=100, reply=50, stalls_after=3), 0.0)
    engine.submit(request(2, prompt=100, reply=20), 0.0)
    engine.submit(request(3, prompt=100, reply=20, stalls_after=0), 0.0)
    seen = run_out(engine)
    assert engine.next_at is None
    assert done(seen).keys() == {2}
    assert first(seen).keys() == {1, 2}
    assert max(progress.made for _, progress in seen if progress.key == 1) == (3 if each_step else 1)
    assert engine.gauges(100.0) == (2, 0)
    assert engine.kv_held == 103 + 100
    engine.submit(request(4, reply=1), 100.0)
    assert (engine.next_at, engine.gauges(100.0)) == (None, (2, 1))
    engine.abort(3, 200.0)
    assert done(run_out(engine)).keys() == {4}
    engine.abort(1, 300.0)
    assert (engine.next_at, engine.kv_held, engine.gauges(300.0)) == (None, 0, (0, 0))


def test_memory_that_is_held_is_what_running_requests_need() -> None:
    engine = Engine(EXACT)
    engine.submit(request(1, prompt=160, reply=16, run="r"), 0.0)
    run_out(engine, 3.0)
    assert engine.kv_held == engine.kv_used >= 160
    run_out(engine)
    assert (engine.kv_held, engine.kv_used) == (0, 176)


def test_gauges_are_those_of_the_last_step() -> None:
    engine = Engine(EXACT)
    engine.submit(request(1, prompt=100, reply=50), 0.0)
    run_out(engine, 2.0)
    engine.submit(request(2), 2.5)
    assert engine.gauges(2.6) == (1, 0)
    run_out(engine, 3.5)
    assert engine.gauges(3.6) == (2, 0)


def test_what_can_never_fit_is_not_taken() -> None:
    engine = Engine(EXACT)
    assert not engine.fits(request(1, prompt=9_000, reply=10, reply_max=2000))
    with pytest.raises(AssertionError, match="larger than the whole memory"):
        engine.submit(request(1, prompt=20_000), 0.0)


def work(seed: int) -> list[tuple[float, Request | int]]:
    """Draw what is submitted, and what is aborted, when."""
    dice = random.Random(seed)
    now, orders = 0.0, list[tuple[float, Request | int]]()
    for key in range(120):
        now += dice.expovariate(12.0)
        run = f"r{dice.randrange(12)}"
        orders.append(
            (
                now,
                request(
                    key,
                    prompt=64 + dice.randrange(32, 900),
                    reply=dice.randrange(1, 300),
                    reply_max=300,
                    run=run,
                    system=64,
                    priority=dice.randrange(2),
                    dies_after=dice.choice((None, None, None, 20)),
                    stalls_after=dice.choice((None,) * 19 + (5,)),
                ),
            )
        )
        if dice.random() < 0.1:
            orders.append((now + 0.3, dice.randrange(key + 1)))
    return sorted(orders, key=lambda order: order[0])


def played(engine: Engine, orders: list[tuple[float, Request | int]], kv_tokens: int) -> list[tuple[float, Progress]]:
    seen: list[tuple[float, Progress]] = []
    for at, order in orders:
        seen += run_out(engine, at)
        if isinstance(order, int):
            engine.abort(order, at)
        else:
            engine.submit(order, at)
        assert engine.kv_used <= kv_tokens
    return seen + run_out(engine)


@pytest.mark.parametrize("queue", ["fcfs", "priority"])
@pytest.mark.parametrize("reserve", [0.0, 0.7])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_skipping_steps_changes_nothing(seed: int, reserve: float, queue: Literal["fcfs", "priority"]) -> None:
    figures = EngineFigures(kv_tokens=3000, reserve=reserve, context_s=1e-7, chunk_tokens=256, queue=queue)
    quick, slow = Engine(figures), Engine(figures, each_step=True)
    orders = work(seed)
    fast, stepwise = played(quick, orders, 3000), played(slow, orders, 3000)
    assert not [progress for _, progress in fast if progress.outcome is Outcome.TOKEN]
    stepwise = [(at, progress) for at, progress in stepwise if progress.outcome is not Outcome.TOKEN]
    assert [progress for _, progress in fast] == [progress for _, progress in stepwise]
    assert [at for at, _ in fast] == pytest.approx([at for at, _ in stepwise], abs=1e-6)
    assert quick.totals == slow.totals
    assert quick.kv_used == slow.kv_used
    assert quick.totals.retractions or reserve


@pytest.mark.parametrize("each_step", [True, False])
def test_a_client_hears_when_its_answer_has_become_as_long_as_it_wanted_to_hear_of(each_step: bool) -> None:
    def told(spoken_of: int) -> tuple[list[int], dict[int, float]]:
        engine = Engine(EXACT, each_step=each_step)
        for key in (1, 2):
            engine.submit(request(key, reply=1000, spoken_of=spoken_of if key == 1 else 0), 0.0)
        seen = run_out(engine)
        return [each.made for _, each in seen if each.outcome is Outcome.GREW], done(seen)

    grew, ended = told(100)
    assert grew == [100, 100 + 128, 228 + 128, 356 + 128, 484 + 128, 612 + 153, 765 + 191]
    assert told(1000)[0] == [], "its end says so itself"
    unasked, as_ever = told(0)
    assert unasked == []
    assert ended == pytest.approx(as_ever)
