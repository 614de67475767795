"""The model on the event loop's clock, whose time is virtual here."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from luftpause.testkit.engine_model import engine as engine_model
from luftpause.testkit.engine_model.engine import Outcome
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.fake_engine.engine import LAG_S_MAX, Engine, PromptTooLongError, Seat
from testkit.engine_model.asking import request
from testkit.virtual_time import VirtualLoop, let_pass, run_virtual

FIGURES = EngineFigures(step_s=0.01, decode_s=0.0, prefill_tps=1e9, kv_tokens=1024, reserve=0.0)


@contextlib.asynccontextmanager
async def running(figures: EngineFigures = FIGURES, ttft_s: float = 0.0) -> AsyncIterator[Engine]:
    engine = Engine(figures, ttft_s)
    steps = asyncio.create_task(engine.run())
    try:
        yield engine
    finally:
        steps.cancel()
        await asyncio.gather(steps, return_exceptions=True)


async def told(seat: Seat) -> list[tuple[float, int, Outcome]]:
    """Return what a seat tells, and when."""
    loop = asyncio.get_running_loop()
    return [(round(loop.time(), 6), progress.made, progress.outcome) async for progress in seat]


def test_every_token_reaches_its_seat_when_its_step_ends() -> None:
    async def sit() -> list[tuple[float, int, Outcome]]:
        async with running() as engine:
            return await told(engine.enter(request(1, reply=3)))

    assert run_virtual(sit()) == [
        (0.01, 1, Outcome.FIRST_TOKEN),
        (0.02, 2, Outcome.TOKEN),
        (0.03, 3, Outcome.DONE),
    ]


def test_a_fixed_delay_comes_ahead_of_all_else() -> None:
    async def sit() -> list[tuple[float, int, Outcome]]:
        async with running(ttft_s=5.0) as engine:
            seat = engine.enter(request(1, reply=1))
            assert engine.gauges().running == engine.gauges().waiting == 0
            return await told(seat)

    assert run_virtual(sit()) == [(5.01, 1, Outcome.DONE)]


@pytest.mark.parametrize("ttft_s", [0.0, 5.0])
def test_a_seat_given_up_ends_and_its_memory_is_free_when_the_step_is_over(ttft_s: float) -> None:
    async def sit() -> None:
        async with running(ttft_s=ttft_s) as engine:
            seat = engine.enter(request(1, prompt=1000, reply=20))
            await let_pass(ttft_s + 0.055)
            assert engine.gauges().running == 1
            held = engine.gauges().kv_held
            engine.leave(seat)
            engine.leave(seat)
            assert engine.gauges().kv_held == held
            assert len([progress async for progress in seat]) == 1
            await let_pass(0.01)
            assert (engine.gauges().running, engine.gauges().kv_held) == (0, 0)
            assert engine.gauges().generated_tokens == 6, "the step under way is carried out"

    run_virtual(sit())


def test_a_seat_given_up_before_the_engine_sees_it_was_never_there() -> None:
    async def sit() -> None:
        async with running(ttft_s=5.0) as engine:
            seat = engine.enter(request(1))
            engine.leave(seat)
            assert [progress async for progress in seat] == []
            await let_pass(60)
            assert engine.gauges().prefilled_tokens == 0

    run_virtual(sit())


def test_a_stalled_request_keeps_its_place_until_its_client_leaves() -> None:
    async def sit() -> None:
        figures = EngineFigures(step_s=0.01, decode_s=0.0, max_running=1)
        async with running(figures) as engine:
            stalled, waiting = engine.enter(request(1, reply=9, stalls_after=2)), engine.enter(request(2, reply=1))
            await let_pass(100)
            assert (engine.gauges().running, engine.gauges().waiting) == (1, 1)
            engine.leave(stalled)
            assert [made for _, made, _ in await told(stalled)] == [2]
            [(at, made, outcome)] = await told(waiting)
            assert (made, outcome) == (1, Outcome.DONE)
            assert 100.01 < at < 100.1

    run_virtual(sit())


def test_who_is_slow_to_look_is_told_once_of_several_tokens() -> None:
    async def sit() -> list[tuple[float, int, Outcome]]:
        async with running() as engine:
            seat = engine.enter(request(1, reply=50))
            await let_pass(0.105)
            return (await told(seat))[:2]

    assert [made for _, made, _ in run_virtual(sit())] == [10, 11]


def test_what_can_never_run_is_refused_at_the_door() -> None:
    async def sit() -> None:
        Engine(FIGURES).enter(request(1, prompt=1024, reply=1))

    with pytest.raises(PromptTooLongError):
        run_virtual(sit())


def test_when_the_steps_end_so_does_every_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken model")

    monkeypatch.setattr(engine_model.Engine, "advance", broken)

    async def sit() -> int:
        async with running() as engine:
            return len([progress async for progress in engine.enter(request(1))])

    assert run_virtual(sit()) == 0


def test_a_machine_that_slept_goes_on_from_the_present_and_one_that_was_late_catches_up() -> None:
    async def sit(late_s: float) -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        async with running() as engine:
            seat = engine.enter(request(1, reply=100))
            await let_pass(0.055)
            loop.now += late_s
            return (await told(seat))[-1][0]

    assert run_virtual(sit(LAG_S_MAX / 2)) == pytest.approx(1.0)
    assert run_virtual(sit(3600.0)) == pytest.approx(3601.0, abs=0.011)


def test_totals_count_prompts_when_their_reply_begins() -> None:
    async def sit() -> None:
        async with running() as engine:
            await told(engine.enter(request(1, prompt=320, reply=16, run="r")))
            await told(engine.enter(request(2, prompt=400, reply=1, run="r")))
            gauges = engine.gauges()
            assert (gauges.prompt_tokens, gauges.cached_tokens, gauges.generated_tokens) == (720, 336, 17)
            assert gauges.prefilled_tokens == 720 - 336
            assert (gauges.kv_held, gauges.kv_tokens, gauges.page_tokens) == (0, 1024, 16)

    run_virtual(sit())


def test_retractions_are_told_of() -> None:
    async def sit() -> int:
        async with running() as engine:
            seats = [engine.enter(request(key, prompt=400, reply=300)) for key in (1, 2)]
            for seat in seats:
                assert (await told(seat))[-1][1:] == (300, Outcome.DONE)
            return engine.gauges().retractions

    assert run_virtual(sit()) == 1
