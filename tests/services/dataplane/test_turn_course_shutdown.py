"""What a client is told whose turn was not over when the door closed, and what is left behind."""

import asyncio
import json

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, chunked, eventually, run_bounded
from adapters.raw_client import connected
from luftpause.core.scheduling.events import TurnFailed
from luftpause.services.dataplane.settings import DataplaneSettings
from services.dataplane.door import Door, open_door
from services.dataplane.ways import CHAT, EVERY, STREAMED, Way, told

SOON = DataplaneSettings(keepalive_after_s=0.01, keepalive_s=0.01)
WAY = pytest.mark.parametrize("way", STREAMED, ids=lambda way: way.name)
EVERY_WAY = pytest.mark.parametrize("way", EVERY, ids=lambda way: way.name)


def has_failed(door: Door) -> None:
    [ending] = door.scheduler.endings
    assert isinstance(ending, TurnFailed)
    assert "shut down" in ending.cause


@WAY
def test_who_was_held_and_heard_only_signs_of_life_hears_why_and_to_come_again(way: Way) -> None:
    async def main() -> None:
        async with open_door(settings=SOON) as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(way.asked())
            assert (await client.head()).status == 200
            body = await client.chunk()
            closing = asyncio.create_task(door.server.close(grace_s=0.0))
            rest, is_cut = await client.rest()
            await closing
            body += rest
            assert is_cut == way.cuts_failures
            assert told(way, body)["message"].endswith("shut down before anything was answered: send the request again")
            assert b"[DONE]" not in body
            assert await client.ended()
            has_failed(door)

    run_bounded(main())


@EVERY_WAY
def test_who_heard_nothing_yet_gets_a_503(way: Way) -> None:
    async def main() -> None:
        async with open_door() as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(way.asked())
            await eventually(lambda: bool(door.scheduler.tickets))
            closing = asyncio.create_task(door.server.close(grace_s=0.0))
            reply = await client.reply()
            await closing
            assert (reply.status, reply.header(b"retry-after")) == (503, b"1")
            assert reply.header(b"x-luftpause-run-id") == b"run_minted_1"
            assert "send the request again" in told(way, reply.body)["message"]
            has_failed(door)

    run_bounded(main())


@EVERY_WAY
def test_so_does_who_waits_for_an_engine_that_said_nothing_yet_and_the_engine_is_left(way: Way) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            arrived.set()
            await visit.left()

        arrived, engine = asyncio.Event(), ScriptedEngine(script)
        async with open_door(engine) as door, connected(door.url) as client:
            way.at(door)
            client.send(way.asked())
            await arrived.wait()
            closing = asyncio.create_task(door.server.close(grace_s=0.0))
            assert (await client.reply()).status == 503
            await closing
            await engine.visits[0].closed.wait()
            has_failed(door)

    run_bounded(main())


@WAY
def test_who_heard_a_part_of_the_answer_is_cut_off(way: Way) -> None:
    """An error behind half an answer would look like its end to some; a broken connection does to nobody."""

    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(*way.events()[:2], end=False))
            await visit.left()

        async with open_door(ScriptedEngine(script), settings=SOON) as door, connected(door.url) as client:
            way.at(door)
            client.send(way.asked())
            await eventually(lambda: bool(door.scheduler.kinds))
            closing = asyncio.create_task(door.server.close(grace_s=0.0))
            reply = await client.reply()
            await closing
            assert (reply.status, reply.broken) == (200, True)
            has_failed(door)

    run_bounded(main())


def test_who_does_not_read_delays_the_end_by_no_more_than_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luftpause.adapters.http_server.server.LAST_WORD_S", 0.01)

    async def main() -> None:
        async with open_door(settings=SOON) as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(CHAT.asked())
            await client.head()
            client.read_no_more()
            connection = next(iter(door.server._state.connections)) if door.server._state else None
            assert connection is not None
            connection.pause_writing()  # as when the client's buffers are full
            await door.server.close(grace_s=0.0)
            has_failed(door)

    run_bounded(main())


def test_who_is_answered_in_time_is_told_nothing_else() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(CHAT.whole())
            await visit.left()

        async with open_door(ScriptedEngine(script)) as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(CHAT.asked())
            await eventually(lambda: bool(door.scheduler.tickets))
            closing = asyncio.create_task(door.server.close(grace_s=10.0))
            await eventually(lambda: door.server._state is not None and door.server._state.closing)
            door.scheduler.place()
            reply = await client.reply()
            assert (reply.status, json.loads(reply.body)["id"]) == (200, "c")
            await closing

    run_bounded(main())
