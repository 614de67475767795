"""Engines that say on a kept connection what nobody asked for: the next turn must not get it for its answer."""

import asyncio
import os

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, eventually, run_bounded
from adapters.engine_http.test_engines import ask, post, replying
from luftpause.adapters.engine_http.connection import AT_ONCE_BYTES
from luftpause.adapters.engine_http.engines import HttpEngines

pytestmark = pytest.mark.usefixtures("each_loop")

STALE = answer(b"stale")
LEAVE = answer(b"bye", status=b"408 Request Timeout", headers=b"connection: close\r\n")
UNASKED = {
    "a second answer": STALE,
    "a stream": chunked(b"stale"),
    "the beginning of one": STALE[:3],
    "no HTTP": b"\0stale",
}


def say_now(visit: Visit, data: bytes) -> None:
    """Let bytes lie in the sockets' buffers before any loop reads them."""
    os.write(visit.writer.get_extra_info("socket").fileno(), data)


@pytest.mark.parametrize("unasked", UNASKED.values(), ids=UNASKED)
@pytest.mark.parametrize("when", ["with it", "while it waits", "unread as the next is sent"])
def test_what_came_before_a_request_is_not_its_answer(unasked: bytes, when: str) -> None:
    first = answer(b"1") + unasked if when == "with it" else answer(b"1")

    async def main() -> None:
        async with replying(first, answer(b"1")).listening() as engine:
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (200, b"1")
            if when != "with it":
                say_now(engine.visits[0], unasked)
            if when == "while it waits":
                await eventually(engine.visits[0].reader.at_eof)
            assert await ask(engines, engine.url) == (200, b"1")
            assert len(engine.visits) == 2
            await engines.close()

    run_bounded(main())


@pytest.mark.parametrize("when", ["with it", "while it waits"])
def test_no_connection_is_kept_to_an_engine_that_spoke_unasked_until_it_is_trusted_again(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        first = answer(b"1") + STALE if when == "with it" else answer(b"1")
        async with replying(first, *[answer(b"1")] * 9).listening() as engine:
            engines = HttpEngines()
            both = await asyncio.gather(ask(engines, engine.url), ask(engines, engine.url))
            assert list(both) == [(200, b"1")] * 2
            if when != "with it":
                say_now(engine.visits[0], STALE)
            for visit in engine.visits[:2]:
                await eventually(visit.reader.at_eof)
            engine.script = replying(*[answer(b"1")] * 9).script
            for _ in range(3):
                assert await ask(engines, engine.url) == (200, b"1")
            assert len(engine.visits) == 5
            [kept] = engines._pools.values()
            kept._distrusted_until = 0.0  # ten minutes are not waited for
            for _ in range(3):
                assert await ask(engines, engine.url) == (200, b"1")
            assert len(engine.visits) == 6
            await engines.close()

    run_bounded(main())
    assert [record.message for record in caplog.records].count("engine_spoke_unasked") == 1


@pytest.mark.parametrize("when", ["with it", "while it waits"])
def test_an_empty_line_behind_an_answer_is_nothing(when: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        first = answer(b"1") + b"\r\n" if when == "with it" else answer(b"1")
        async with replying(first, answer(b"1"), answer(b"1")).listening() as engine:
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (200, b"1")
            if when != "with it":
                say_now(engine.visits[0], b"\r\n")
                [pool] = engines._pools.values()
                [kept] = pool._idle
                await eventually(lambda: kept.usable)
            assert await ask(engines, engine.url) == (200, b"1")
            assert await ask(engines, engine.url) == (200, b"1")
            assert len(engine.visits) == 1
            await engines.close()

    run_bounded(main())
    assert not caplog.records


@pytest.mark.parametrize("when", ["while it waits", "unread as the next is sent", "as its answer"])
def test_an_engine_that_takes_leave_of_a_connection_is_asked_on_another_and_trusted(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(answer(b"1"))
            if len(engine.visits) > 1:
                await visit.request()
                visit.send(answer(b"1"))
            elif when == "as its answer":
                await visit.request()
                visit.send(LEAVE)
            await visit.left()

        engine = ScriptedEngine(script)
        async with engine.listening():
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (200, b"1")
            if when != "as its answer":
                say_now(engine.visits[0], LEAVE)
            if when == "while it waits":
                await eventually(engine.visits[0].reader.at_eof)
            assert await ask(engines, engine.url) == (200, b"1")
            assert await ask(engines, engine.url) == (200, b"1")
            assert len(engine.visits) == 2
            await engines.close()

    run_bounded(main())
    assert not caplog.records


def test_a_request_that_was_not_whole_yet_is_granted_by_no_answer() -> None:
    """Refused it may be: see `test_an_engine_that_answers_before_the_body_is_written_is_heard`."""

    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(answer(b"1"))
            if len(engine.visits) == 1:
                await visit.reader.readuntil(b"\r\n\r\n")
                visit.read_no_more()
                visit.send(STALE)
            await visit.left()

        engine = ScriptedEngine(script)
        async with engine.listening():
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (200, b"1")
            assert await ask(engines, engine.url, post(b"x" * 64 * AT_ONCE_BYTES)) == (200, b"1")
            assert len(engine.visits) == 2
            await engines.close()

    run_bounded(main())


def test_an_answer_of_a_fresh_connection_is_taken_as_it_comes() -> None:
    async def main() -> None:
        async with replying(LEAVE).listening() as engine:
            assert await ask(HttpEngines(), engine.url) == (408, b"bye")

    run_bounded(main())
