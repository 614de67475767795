"""The model on a real clock."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from luftpause.testkit.fake_engine.engine import Engine, PromptTooLongError
from luftpause.testkit.fake_engine.model import EngineModel, Figures
from luftpause.testkit.fake_engine.prefix_cache import Piece
from testkit.running import run

QUICK = Figures(ttft_s=0.0, token_s=0.0, crowd_s=0.0, prefill_tps=1e9, kv_tokens=1000)
PROMPT = (Piece("a", 10),)


@contextlib.asynccontextmanager
async def running(figures: Figures = QUICK) -> AsyncIterator[Engine]:
    engine = Engine(figures)
    steps = asyncio.create_task(engine.run())
    try:
        yield engine
    finally:
        steps.cancel()
        await asyncio.gather(steps, return_exceptions=True)


def test_a_seat_tells_of_every_token_and_ends_with_the_last() -> None:
    async def sit() -> list[tuple[int, bool]]:
        async with running() as engine:
            seat = engine.enter(PROMPT, reply_tokens=3, reply_prefix="a+")
            return [(progress.made, progress.done) async for progress in seat]

    assert run(sit()) == [(1, False), (2, False), (3, True)]


def test_a_seat_given_up_ends_and_giving_it_up_twice_is_once() -> None:
    async def sit() -> int:
        async with running() as engine:
            seat = engine.enter(PROMPT, reply_tokens=3, reply_prefix="a+", stalls_after=0)
            engine.leave(seat)
            engine.leave(seat)
            assert [progress async for progress in seat] == []
            return engine.gauges().aborted

    assert run(sit()) == 1


def test_leaving_after_the_last_token_aborts_nothing() -> None:
    async def sit() -> tuple[int, int]:
        async with running() as engine:
            seat = engine.enter(PROMPT, reply_tokens=1, reply_prefix="a+")
            assert len([progress async for progress in seat]) == 1
            engine.leave(seat)
            return engine.gauges().finished, engine.gauges().aborted

    assert run(sit()) == (1, 0)


def test_what_can_never_run_is_refused_at_the_door() -> None:
    async def sit() -> None:
        Engine(QUICK).enter((Piece("a", 1000),), reply_tokens=1, reply_prefix="a+")

    with pytest.raises(PromptTooLongError):
        run(sit())


def test_when_the_steps_end_so_does_every_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken model")

    monkeypatch.setattr(EngineModel, "end_step", broken)

    async def sit() -> int:
        async with running() as engine:
            seat = engine.enter(PROMPT, reply_tokens=3, reply_prefix="a+")
            return len([progress async for progress in seat])

    assert run(sit()) == 0


def test_the_pace_is_that_of_the_figures() -> None:
    async def sit() -> float:
        loop = asyncio.get_running_loop()
        async with running(Figures(ttft_s=0.02, token_s=0.01, crowd_s=0.0, prefill_tps=1e9)) as engine:
            began = loop.time()
            seat = engine.enter(PROMPT, reply_tokens=4, reply_prefix="a+")
            assert len([progress async for progress in seat]) == 4
            return loop.time() - began

    assert run(sit()) >= 0.02 + 3 * 0.01 - 0.002  # never faster; how much slower is the machine's affair
