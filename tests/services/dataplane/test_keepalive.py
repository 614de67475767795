"""A client that waits long is told so, and what comes after its 200 follows the rules of the house."""

import asyncio
import json
from dataclasses import replace

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, eventually, run_bounded
from adapters.raw_client import RawClient, Reply, connected, request
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.ports.scheduler import TurnRefusedError
from luftpause.services.dataplane.keepalive import Keepalives
from luftpause.services.dataplane.settings import DataplaneSettings
from services.dataplane.door import BODY, JSON, Door, chat_bytes, open_door

SOON = DataplaneSettings(keepalive_after_s=0.01, keepalive_s=0.01)
PING = b": waiting\n\n"
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
AFTER_IT_SPOKE = replace(SOON, keepalive_after_s=0.5)
"""Later than an engine in this process says what it has to say first."""


async def answers(visit: Visit) -> None:
    while True:
        await visit.request()
        visit.send(chunked(CHUNK, DONE))


async def pings_come(client: RawClient, times: int) -> Reply:
    """Return the head of the answer once that many pings have come."""
    head = await client.head()
    for _ in range(times):
        assert await client.chunk() == PING
    return head


async def rest_of(client: RawClient) -> bytes:
    """Return the rest of the answer, without its pings."""
    pieces = []
    while piece := await client.chunk():
        if piece != PING:
            pieces.append(piece)
    return b"".join(pieces)


def test_a_held_stream_gets_its_200_and_signs_of_life_then_its_answer() -> None:
    async def main() -> None:
        async with open_door(ScriptedEngine(answers), settings=SOON) as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(chat_bytes())
            head = await pings_come(client, 3)
            assert head.status == 200
            assert head.header(b"content-type") == b"text/event-stream"
            assert head.header(b"x-luftpause-run-id") == b"run_minted_1"
            door.scheduler.place()
            text = await rest_of(client)
            assert CHUNK in text
            assert DONE in text
            assert isinstance(door.scheduler.endings[0], TurnFinished)

    run_bounded(main())


def test_an_engine_that_has_answered_but_said_nothing_yet_is_waited_for_the_same_way() -> None:
    async def main() -> None:
        speak = asyncio.Event()

        async def prefills(visit: Visit) -> None:
            await visit.request()
            visit.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-engine: yes\r\n")
            visit.send(b"transfer-encoding: chunked\r\n\r\n")
            await speak.wait()
            visit.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(CHUNK), CHUNK))

        async with open_door(ScriptedEngine(prefills), settings=AFTER_IT_SPOKE) as door, connected(door.url) as client:
            client.send(chat_bytes())
            head = await pings_come(client, 2)
            assert head.header(b"x-engine") == b"yes"
            speak.set()
            assert CHUNK in await rest_of(client)

    run_bounded(main())


@pytest.mark.parametrize("path", [b"/v1/messages", b"/v1/responses", b"/v1beta/models/m:streamGenerateContent?alt=sse"])
def test_an_engine_that_says_what_its_client_is_not_told_is_waited_for_the_same_way(path: bytes) -> None:
    """A provider that queues a turn sends comments; in other words they are nothing."""

    async def main() -> None:
        speak = asyncio.Event()
        comment = b": queued\n\n"

        async def queues(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(comment, end=False))
            await speak.wait()
            visit.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(CHUNK), CHUNK))

        asked = {"model": "m", "stream": True, "max_tokens": 9, "input": "hi"}
        asked |= {"messages": [{"role": "user", "content": "hi"}], "contents": [{"parts": [{"text": "hi"}]}]}
        async with open_door(ScriptedEngine(queues), settings=SOON) as door, connected(door.url) as client:
            client.send(request(b"POST", path, JSON, body=json.dumps(asked).encode()))
            await client.head()
            signs = [await client.chunk() for _ in range(3)]
            assert signs[0], "the stream goes on"
            assert len(set(signs)) == 1
            await eventually(lambda: len(door.scheduler.kinds) == 1)  # the engine has said something
            await asyncio.wait_for(client.chunk(), 5)
            speak.set()
            rest = await rest_of(client)
            assert b"hi" in rest
            assert b"queued" not in rest
            await door.still_answers()

    run_bounded(main())


@pytest.mark.parametrize("status", [b"200 OK", b"404 No"])
def test_nothing_is_put_into_an_answer_whose_length_was_told_or_that_is_a_refusal(status: bytes) -> None:
    async def main() -> None:
        speak = asyncio.Event()

        async def prefills(visit: Visit) -> None:
            await visit.request()
            whole = answer(CHUNK, status=status, headers=b"content-type: text/event-stream\r\n")
            visit.send(whole[: -len(CHUNK)])
            await speak.wait()
            visit.send(CHUNK)

        async with open_door(ScriptedEngine(prefills)) as door, connected(door.url) as client:
            client.send(chat_bytes())
            reply = await client.head()
            assert not door.dataplane._around.keepalives._due
            speak.set()
            assert await client.reader.readexactly(int(reply.header(b"content-length") or 0)) == CHUNK
            await door.still_answers()

    run_bounded(main())


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("settings", "body"),
    [
        (DataplaneSettings(keepalive_after_s=0.001, keepalive_s=0.0), BODY),
        (SOON, b'{"model":"m"}'),
    ],
)
def test_nobody_else_gets_anything_before_the_answer(
    settings: DataplaneSettings, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(visit: Visit) -> None:
        await visit.request()
        visit.send(answer(b'{"error":"no"}', status=b"500 Oh"))

    def never(*_: object, **__: object) -> None:
        raise AssertionError("nobody is to be kept waiting here")

    async def main() -> None:
        async with open_door(ScriptedEngine(refuses), settings=settings) as door:
            reply = await door.chat(body=body)
            assert (reply.status, reply.body) == (500, b'{"error":"no"}')

    monkeypatch.setattr("luftpause.services.dataplane.keepalive.Keepalive", never)
    run_bounded(main())


@pytest.mark.interpreted
@pytest.mark.parametrize("retry_after", [b"", b"retry-after: 0\r\n"])
@pytest.mark.parametrize("status", [b"429 Too Many", b"503 Loading"])
def test_after_the_200_a_busy_engine_is_asked_again(
    status: bytes, retry_after: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luftpause.services.dataplane.endings.BUSY_PAUSE_S", 0.001)

    async def main() -> None:
        asked = 0

        async def is_busy_twice(visit: Visit) -> None:
            nonlocal asked
            while True:
                await visit.request()
                asked += 1
                visit.send(answer(b"{}", status=status, headers=retry_after) if asked < 3 else chunked(CHUNK, DONE))

        async with open_door(ScriptedEngine(is_busy_twice), settings=SOON) as door:
            async with connected(door.url) as client:
                door.scheduler.hold = True
                client.send(chat_bytes())
                await pings_come(client, 1)
                door.scheduler.hold = False
                door.scheduler.place()
                assert CHUNK in await rest_of(client)
            assert asked == 3
            assert [type(ending) for ending in door.scheduler.endings] == [TurnFailed, TurnFailed, TurnFinished]
            turns = [offer.turn for offer in door.scheduler.offers]
            assert len(set(turns)) == 3
            assert {offer.keys.run for offer in door.scheduler.offers[1:]} == {"run_minted_1"}
            assert door.scheduler.offers[1].age_s > 0.0

    run_bounded(main())


async def waits_then_places(door: Door, client: RawClient) -> bytes:
    door.scheduler.hold = True
    client.send(chat_bytes())
    await pings_come(client, 1)
    door.scheduler.place()
    return await rest_of(client)


def test_after_the_200_any_other_failure_is_an_event_and_no_done() -> None:
    async def refuses(visit: Visit) -> None:
        await visit.request()
        visit.send(answer(b'{"error":{"message":"broken"}}', status=b"500 Oh"))

    async def main() -> None:
        async with open_door(ScriptedEngine(refuses), settings=SOON) as door:
            async with connected(door.url) as client:
                text = await waits_then_places(door, client)
            assert b"[DONE]" not in text
            event = json.loads(text[text.index(b"data: ") + 6 : text.rindex(b"\n\n")])
            assert event["error"]["code"] == "engine_failed"
            assert "engine a: status 500" in event["error"]["message"]
            assert "broken" in event["error"]["message"]
            assert isinstance(door.scheduler.endings[0], TurnFailed)

    run_bounded(main())


@pytest.mark.parametrize(
    "said",
    [
        answer(b""),
        answer(b'{"choices":[]}'),
        answer(b"data: [DONE]"),
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ],
)
def test_after_the_200_an_answer_that_says_nothing_is_an_event_and_not_silence(said: bytes) -> None:
    async def streams_nothing(visit: Visit) -> None:
        await visit.request()
        visit.send(said)

    async def main() -> None:
        async with open_door(ScriptedEngine(streams_nothing), settings=SOON) as door:
            async with connected(door.url) as client:
                text = await waits_then_places(door, client)
            event = json.loads(text[text.index(b"data: ") + 6 : text.rindex(b"\n\n")])
            assert event["error"]["message"].startswith("engine a: its answer is n")
            assert isinstance(door.scheduler.endings[0], TurnFailed)

    run_bounded(main())


def test_after_the_200_an_engine_that_cannot_be_reached_is_an_event_too() -> None:
    async def main() -> None:
        async with open_door(settings=SOON) as door, connected(door.url) as client:
            text = await waits_then_places(door, client)
            assert b'"code":"engine_failed"' in text
            assert b"[DONE]" not in text

    run_bounded(main())


def test_after_the_200_an_engine_that_dies_before_its_first_byte_is_an_event() -> None:
    async def dies(visit: Visit) -> None:
        await visit.request()
        visit.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        visit.abort()

    async def main() -> None:
        async with open_door(ScriptedEngine(dies), settings=SOON) as door, connected(door.url) as client:
            assert b'"code":"engine_failed"' in await waits_then_places(door, client)

    run_bounded(main())


def test_after_the_200_a_refusal_of_the_scheduler_is_an_event() -> None:
    async def main() -> None:
        async with open_door(settings=SOON) as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(chat_bytes())
            await pings_come(client, 1)
            refusal = Refusal(reason=RefusalReason.EXPIRED, message="held too long")
            door.scheduler.tickets[0].placement.set_exception(TurnRefusedError(refusal))
            assert b'"code":"expired"' in await rest_of(client)

    run_bounded(main())


def test_a_client_that_leaves_between_signs_of_life_abandons_its_turn() -> None:
    async def main() -> None:
        async with open_door(settings=SOON) as door:
            async with connected(door.url) as client:
                door.scheduler.hold = True
                client.send(chat_bytes())
                await pings_come(client, 2)
            await eventually(lambda: door.scheduler.kinds == ["TurnAbandoned"])

    run_bounded(main())


class Turn:
    """Counts its signs of life."""

    def __init__(self) -> None:
        self.signs = 0

    async def show_life(self) -> None:
        self.signs += 1


def test_a_stopped_keepalive_sends_no_more() -> None:
    async def main() -> None:
        turn = Turn()
        keepalive = Keepalives(after_s=0.0, period_s=0.0).begin(turn)
        await eventually(lambda: turn.signs > 2)
        keepalive.stop()
        keepalive.stop()
        seen = turn.signs
        for _ in range(5):
            await asyncio.sleep(0)
        assert turn.signs == seen

    run_bounded(main())


def test_of_many_that_wait_each_gets_its_first_sign_when_it_is_due_and_a_stopped_one_none() -> None:
    async def main() -> None:
        turns = [Turn() for _ in range(4)]
        keepalives = Keepalives(after_s=0.01, period_s=60.0)
        first, stopped = keepalives.begin(turns[0]), keepalives.begin(turns[1])
        stopped.stop()
        await eventually(lambda: turns[0].signs == 1)
        later = [keepalives.begin(turn) for turn in turns[2:]]
        await eventually(lambda: [turn.signs for turn in turns] == [1, 0, 1, 1])
        for keepalive in (first, *later):
            keepalive.stop()

    run_bounded(main())


@pytest.mark.parametrize(
    ("path", "headers", "ping"),
    [
        (b"/v1/responses", (b"thread-id: t1", b"originator: codex_exec"), b'event: ping\ndata: {"type":"ping"}\n\n'),
        (b"/v1/responses", (b"x-session-id: s1",), PING),
        (b"/v1/responses", (), PING),
        (b"/v1/chat/completions", (b"thread-id: t1",), PING),
    ],
)
def test_who_counts_only_events_gets_events(path: bytes, headers: tuple[bytes, ...], ping: bytes) -> None:
    body = json.dumps({"model": "m", "stream": True, "input": "hi", "messages": [{"role": "user", "content": "hi"}]})

    async def main() -> None:
        async with open_door(ScriptedEngine(answers), settings=SOON) as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(request(b"POST", path, JSON, *headers, body=body.encode()))
            assert (await client.head()).status == 200
            for _ in range(2):
                assert await client.chunk() == ping
            door.scheduler.place()
            while await client.chunk():
                continue

    run_bounded(main())
