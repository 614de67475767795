"""A client that leaves is noticed in every phase: the turn ends at once, and so does the engine's work."""

import asyncio
from collections.abc import Callable

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, chunked, eventually, run_bounded
from adapters.raw_client import RawClient, connected
from adapters.raw_client import request as raw_request
from services.dataplane.door import CHAT, JSON, chat_bytes, open_door

pytestmark = pytest.mark.usefixtures("each_loop")


def leave(client: RawClient, how: str) -> None:
    if how == "reset":
        client.leave()
    else:
        client.writer.close()


async def reaches(count: Callable[[], int], wanted: int) -> None:
    await eventually(lambda: count() == wanted)


HOW = pytest.mark.parametrize("how", ["reset", "closed"])


@HOW
def test_while_it_sends_its_body(how: str) -> None:
    async def main() -> None:
        async with open_door() as door:
            async with connected(door.url) as client:
                client.send(raw_request(b"POST", CHAT, JSON, b"content-length: 100") + b'{"model"')
                await client.writer.drain()
                leave(client, how)
            await door.still_answers()
            assert door.scheduler.offers == []
            assert door.scheduler.reports == []

    run_bounded(main())


@HOW
def test_while_the_scheduler_is_away(how: str) -> None:
    async def main() -> None:
        async with open_door() as door:
            door.scheduler.away = asyncio.Event()
            async with connected(door.url) as client:
                client.send(chat_bytes())
                await eventually(lambda: len(door.scheduler.offers) == 1)
                leave(client, how)
                await eventually(lambda: len(door.scheduler.endings) == 1)
            assert door.scheduler.kinds == ["TurnAbandoned"]
            await door.still_answers()

    run_bounded(main())


@HOW
def test_while_its_turn_is_held(how: str) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            raise AssertionError("a held turn reaches no engine")

        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.hold = True
            async with connected(door.url) as client:
                client.send(chat_bytes())
                await eventually(lambda: len(door.scheduler.tickets) == 1)
                assert len(door.dataplane.open_turns) == 1
                leave(client, how)
                await eventually(lambda: len(door.scheduler.endings) == 1)
            assert door.scheduler.kinds == ["TurnAbandoned"]
            assert door.scheduler.tickets[0].placement.cancelled()
            await door.still_answers()

    run_bounded(main())


@HOW
def test_while_its_turn_is_placed_at_the_same_moment(how: str) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.left()

        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.hold = True
            for turns in range(10):
                async with connected(door.url) as client:
                    client.send(chat_bytes())
                    await reaches(lambda: len(door.scheduler.tickets), turns + 1)
                    leave(client, how)
                    door.scheduler.place()
                    await reaches(lambda: len(door.scheduler.endings), turns + 1)
            assert all(type(report).__name__ == "TurnAbandoned" for report in door.scheduler.endings)

    run_bounded(main())


@HOW
def test_before_the_engines_first_byte(how: str) -> None:
    async def main() -> None:
        arrived = asyncio.Event()

        async def script(visit: Visit) -> None:
            await visit.request()
            arrived.set()
            await visit.left()

        engine = ScriptedEngine(script)
        async with open_door(engine) as door:
            async with connected(door.url) as client:
                client.send(chat_bytes())
                await arrived.wait()
                leave(client, how)
                await engine.visits[0].closed.wait()
            await eventually(lambda: door.scheduler.kinds == ["TurnAbandoned"])
            await door.still_answers()

    run_bounded(main())


@HOW
@pytest.mark.parametrize("slow", [False, True])
def test_in_the_middle_of_the_stream(how: str, slow: bool) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(b"data: {}\n\n", end=False))
            await flood.wait()
            if slow:  # the client reads nothing: the door waits in the middle of a send
                for _ in range(300):
                    visit.send(b"%x\r\n%b\r\n" % (65536, b"x" * 65536))
            await visit.left()

        flood = asyncio.Event()
        engine = ScriptedEngine(script)
        async with open_door(engine) as door:
            async with connected(door.url) as client:
                client.send(chat_bytes())
                await client.head()
                assert await client.chunk() == b"data: {}\n\n"
                if slow:
                    client.read_no_more()
                flood.set()
                if slow:
                    await eventually(lambda: door.client_keeps_us_waiting)
                leave(client, "reset" if slow else how)
                await engine.visits[0].closed.wait()
            await eventually(lambda: door.scheduler.kinds == ["FirstTokenSeen", "TurnAbandoned"])
            await door.still_answers()

    run_bounded(main())


@HOW
def test_after_the_last_byte(how: str) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(b"data: [DONE]\n\n"))
            await visit.left()

        async with open_door(ScriptedEngine(script)) as door:
            async with connected(door.url) as client:
                client.send(chat_bytes())
                assert (await client.reply()).status == 200
                leave(client, how)
            assert door.scheduler.kinds == ["FirstTokenSeen", "TurnFinished"]
            await door.still_answers()

    run_bounded(main())


def test_at_the_end_marker_before_the_engine_closes_its_answer() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(b'data: {"choices":[{"finish_reason":"stop"}]}\n\n', b"data: [DONE]\n\n", end=False))
            await visit.left()

        engine = ScriptedEngine(script)
        async with open_door(engine) as door:
            async with connected(door.url) as client:
                client.send(chat_bytes())
                await client.head()
                while not (await client.chunk()).endswith(b"data: [DONE]\n\n"):
                    pass
                client.leave()
                await engine.visits[0].closed.wait()
            assert door.scheduler.kinds == ["FirstTokenSeen", "TurnFinished"]

    run_bounded(main())
