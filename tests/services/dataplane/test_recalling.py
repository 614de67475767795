"""A batch turn is taken back from its engine before its first byte, and only then; its client never knows."""

import asyncio
import json

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, eventually, run_bounded
from adapters.raw_client import RawClient, connected, request
from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.events import FirstTokenSeen, TurnAbandoned, TurnFinished, TurnReturned, TurnStays
from services.dataplane.door import BODY, CHAT, JSON, Door, chat_bytes, open_door
from services.dataplane.test_keepalive import CHUNK, DONE, SOON, pings_come, rest_of

BATCH = b"x-luftpause-class: batch"
WHOLE = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Reluctant:
    """An engine that keeps its first visitors waiting until they leave, and answers all others."""

    def __init__(self, *, first: bytes = b"", waits: int = 1, whole: bytes = chunked(CHUNK, DONE)) -> None:
        self.first = first
        self.waits = waits
        self.whole = whole
        self.bodies: list[bytes] = []
        self.left = 0

    async def __call__(self, visit: Visit) -> None:
        self.bodies.append((await visit.request()).body)
        if len(self.bodies) <= self.waits:
            visit.send(self.first)
            await visit.left()
            self.left += 1
        else:
            visit.send(self.whole)


def recall(door: Door, at: int = -1) -> TurnId:
    """Ask the turn back that was offered there."""
    turn = door.scheduler.offers[at].turn
    door.scheduler.recall(turn)
    return turn


async def sent(engine: Reluctant, times: int = 1) -> None:
    await eventually(lambda: len(engine.bodies) == times)


@pytest.mark.parametrize("first", [b"", HEAD], ids=["before the head", "after the head"])
def test_a_recalled_stream_comes_again_with_its_body_and_its_age(first: bytes) -> None:
    async def main() -> None:
        engine = Reluctant(first=first)
        async with open_door(ScriptedEngine(engine), settings=SOON) as door, connected(door.url) as client:
            client.send(chat_bytes(BATCH))
            head = await pings_come(client, 2)
            await sent(engine)
            door.scheduler.hold = True
            turn = recall(door)
            await eventually(lambda: len(door.scheduler.offers) == 2)
            await eventually(lambda: engine.left == 1)
            assert await client.chunk() == b": waiting\n\n"  # its signs of life go on
            first_offer, again = door.scheduler.offers
            assert door.scheduler.reports == [TurnReturned(turn=turn)]
            assert (again.recalls, first_offer.recalls) == (1, 0)
            assert again.keys.run == "run_minted_1"
            assert again.age_s > 0
            assert again.turn != turn
            door.scheduler.place()
            text = await rest_of(client)
            assert text == CHUNK + DONE
            assert head.header(b"x-luftpause-run-id") == b"run_minted_1"
            assert engine.bodies == [BODY, BODY]
            assert door.scheduler.kinds == ["TurnReturned", "FirstTokenSeen", "TurnFinished"]

    run_bounded(main())


def test_a_recalled_answer_that_is_not_streamed_comes_again() -> None:
    async def main() -> None:
        engine = Reluctant(whole=answer(WHOLE))
        async with open_door(ScriptedEngine(engine)) as door, connected(door.url) as client:
            client.send(chat_bytes(BATCH, body=BODY.replace(b"true", b"false")))
            await sent(engine)
            recall(door)
            reply = await client.reply()
            assert (reply.status, reply.body) == (200, WHOLE)
            assert door.scheduler.kinds == ["TurnReturned", "FirstTokenSeen", "TurnFinished"]

    run_bounded(main())


def test_a_turn_comes_back_as_often_as_it_is_asked_for() -> None:
    async def main() -> None:
        engine = Reluctant(waits=2)
        async with open_door(ScriptedEngine(engine)) as door, connected(door.url) as client:
            client.send(chat_bytes(BATCH))
            for time in (1, 2):
                await sent(engine, time)
                recall(door)
            await client.head()
            assert await rest_of(client) == CHUNK + DONE
            assert [offer.recalls for offer in door.scheduler.offers] == [0, 1, 2]

    run_bounded(main())


def test_a_turn_whose_first_byte_has_come_stays() -> None:
    async def main() -> None:
        go_on = asyncio.Event()

        async def begins(visit: Visit) -> None:
            await visit.request()
            visit.send(HEAD + b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK))
            await go_on.wait()
            visit.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(DONE), DONE))

        async with open_door(ScriptedEngine(begins)) as door, connected(door.url) as client:
            client.send(chat_bytes(BATCH))
            await client.head()
            assert await client.chunk() == CHUNK
            turn = recall(door)
            go_on.set()
            assert await rest_of(client) == DONE
            first, stays, ended = door.scheduler.reports
            assert (first, stays) == (FirstTokenSeen(turn=turn), TurnStays(turn=turn))
            assert isinstance(ended, TurnFinished)
            recall(door)
            assert len(door.scheduler.reports) == 3, "nothing is owed for a turn that is over"

    run_bounded(main())


@pytest.mark.parametrize(
    ("path", "header", "first"),
    [
        (b"/v1/responses", BATCH, b""),
        (CHAT, b"x-luftpause-class: interactive", b""),
        (CHAT, BATCH, HEAD.replace(b"transfer-encoding: chunked", b"content-length: %d" % len(CHUNK))),
    ],
    ids=["an engine that may act", "interactive", "a length was told"],
)
def test_what_may_not_be_sent_twice_stays(path: bytes, header: bytes, first: bytes) -> None:
    async def main() -> None:
        asked_for, go_on = asyncio.Event(), asyncio.Event()

        async def answers(visit: Visit) -> None:
            await visit.request()
            visit.send(first)
            asked_for.set()
            await go_on.wait()
            visit.send(CHUNK if first else chunked(CHUNK))

        asked = json.dumps({"model": "m", "stream": True, "input": "hi", "messages": []}).encode()
        async with open_door(ScriptedEngine(answers)) as door, connected(door.url) as client:
            door.scheduler.dialects = ("responses",)
            client.send(request(b"POST", path, JSON, header, body=asked))
            await asyncio.wait_for(asked_for.wait(), 5)
            if first:
                await client.head()
            turn = recall(door)
            assert door.scheduler.reports == [TurnStays(turn=turn)]
            go_on.set()
            await eventually(lambda: len(door.dataplane.open_turns) == 0)
            assert len(door.scheduler.offers) == 1

    run_bounded(main())


def test_a_client_that_leaves_while_its_turn_is_taken_back_is_gone() -> None:
    async def main() -> None:
        engine = Reluctant()
        async with open_door(ScriptedEngine(engine)) as door, connected(door.url) as client:
            client.send(chat_bytes(BATCH))
            await sent(engine)
            door.scheduler.hold = True
            recall(door)
            await eventually(lambda: len(door.scheduler.offers) == 2)
            client.leave()
            await eventually(lambda: len(door.dataplane.open_turns) == 0)
            returned, abandoned = door.scheduler.reports
            assert returned == TurnReturned(turn=door.scheduler.offers[0].turn)
            assert abandoned == TurnAbandoned(turn=door.scheduler.offers[1].turn)
            await eventually(lambda: engine.left == 1)
            await door.still_answers()

    run_bounded(main())


def test_the_second_engine_fails_in_the_stream_that_was_begun() -> None:
    async def main() -> None:
        broken = answer(b'{"error":{"message":"out of memory"}}', status=b"500 Broken")
        engine = Reluctant(first=HEAD, whole=broken)
        async with open_door(ScriptedEngine(engine)) as door, connected(door.url) as client:
            client.send(chat_bytes(BATCH))
            assert (await client.head()).status == 200
            await sent(engine)
            recall(door)
            text = await rest_of(client)
            assert b"out of memory" in text
            assert DONE not in text
            assert door.scheduler.kinds == ["TurnReturned", "TurnFailed"]

    run_bounded(main())


def test_connections_are_used_again_after_a_turn_came_back() -> None:
    """Nothing of the cancellation stays with the task that serves the connection."""

    async def main() -> None:
        engine = Reluctant()
        async with open_door(ScriptedEngine(engine)) as door, connected(door.url) as client:
            await _one(client, door, engine)
            client.send(chat_bytes(BATCH))
            await client.head()
            assert await rest_of(client) == CHUNK + DONE

    run_bounded(main())


async def _one(client: RawClient, door: Door, engine: Reluctant) -> None:
    client.send(chat_bytes(BATCH))
    await sent(engine)
    recall(door)
    await client.head()
    assert await rest_of(client) == CHUNK + DONE
