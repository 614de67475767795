"""Engines that end their answer and never say why the model stopped: one that says that it is over is whole."""

import gzip
import json

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, run_bounded
from adapters.raw_client import RawClient, Reply, connected
from luftpause.core.model.ids import ToolCallId
from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.services.dataplane.settings import DataplaneSettings
from services.dataplane.door import Door, open_door
from services.dataplane.ways import CHAT, NATIVE, TRANSLATED, WHOLE, WHOLE_TRANSLATED, Way, encoded, told

PUT_TOGETHER = (Way("chat", "/v1/chat/completions", stream=False, native=True), *WHOLE_TRANSLATED)
"""Whole answers, of an engine that is asked for a stream."""
SAID = (b'finish_reason": "', b"[DONE]", b"message_delta", b"message_stop", b"response.completed")
DONE = b"data: [DONE]\n\n"
AS_STREAM = b"content-type: text/event-stream\r\n"


def each(ways: tuple[Way, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", ways, ids=lambda way: f"{way.name}-{way.path.rpartition('=')[2][:3]}")


def without_an_end(way: Way) -> list[bytes]:
    """Return the events of an answer that tell neither why it ended nor that it did."""
    return [event for event in way.events() if not any(word in event for word in SAID)]


def saying(raw: bytes) -> ScriptedEngine:
    async def script(visit: Visit) -> None:
        while True:
            await visit.request()
            visit.send(raw)

    return ScriptedEngine(script)


async def ask(door: Door, way: Way, client: RawClient) -> Reply:
    way.at(door)
    door.scheduler.engine_kind = EngineKind.VLLM if way.stream else EngineKind.LLAMA_CPP
    client.send(way.asked())
    return await client.reply()


@each((CHAT, *TRANSLATED, *PUT_TOGETHER))
def test_a_stream_that_says_that_it_is_over_and_not_why_is_whole_in_every_dialect(way: Way) -> None:
    """Its call is made, and its run waits for it."""

    async def main() -> None:
        async with open_door(saying(chunked(*without_an_end(way), DONE))) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert (reply.status, reply.broken) == (200, False)
            assert b'"look"' in reply.body
            assert not any(word in reply.body for word in (b'"error":{', b"response.failed", b'"finish_reason":null'))
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFinished)
            assert ending.tool_calls == (ToolCallId("call_1"),)

    run_bounded(main())


@each(TRANSLATED + WHOLE_TRANSLATED)
def test_a_whole_document_that_does_not_say_why_it_ended_is_whole(way: Way) -> None:
    document = json.loads(json.dumps(WHOLE))
    document["choices"][0]["finish_reason"] = None

    async def main() -> None:
        async with open_door(saying(answer(encoded(document)))) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert (reply.status, reply.broken) == (200, False)
            assert b'"look"' in reply.body
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFinished)

    run_bounded(main())


def framed(events: bytes, how: str) -> bytes:
    if how == "of a told length":
        return answer(events, headers=AS_STREAM)
    return chunked(events) if how == "in chunks" else b"HTTP/1.1 200 OK\r\n" + AS_STREAM + b"\r\n" + events


def ending(raw: bytes) -> ScriptedEngine:
    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(raw)
        await visit.close()

    return ScriptedEngine(script)


@each(NATIVE)
@pytest.mark.parametrize("how", ["of a told length", "in chunks"])
def test_passed_on_a_stream_that_tells_by_its_transfer_alone_that_it_is_over_is_as_it_came(way: Way, how: str) -> None:
    events = b"".join(without_an_end(way))

    async def main() -> None:
        async with open_door(saying(framed(events, how))) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert (reply.status, reply.broken, reply.body) == (200, False, events)
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFinished)

    run_bounded(main())


@each(NATIVE)
def test_passed_on_a_stream_that_ends_with_its_connection_and_without_a_word_is_cut(way: Way) -> None:
    """It looks like any answer whose engine died."""
    events = b"".join(without_an_end(way))

    async def main() -> None:
        async with open_door(ending(framed(events, "to its end"))) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert (reply.status, reply.broken, reply.body) == (200, True, events)
            [failure] = door.scheduler.endings
            assert isinstance(failure, TurnFailed)

    run_bounded(main())


@each(TRANSLATED)
@pytest.mark.parametrize("how", ["of a told length", "in chunks", "to its end"])
def test_a_stream_without_any_word_of_its_end_broke_off_in_other_words(way: Way, how: str) -> None:
    events = b"".join(without_an_end(way))

    async def main() -> None:
        async with open_door(ending(framed(events, how))) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert reply.status == 200
            assert told(way, reply.body)["message"]
            [failure] = door.scheduler.endings
            assert isinstance(failure, TurnFailed)

    run_bounded(main())


@each(PUT_TOGETHER)
def test_an_answer_of_such_a_stream_that_would_be_put_together_is_a_502(way: Way) -> None:
    async def main() -> None:
        async with open_door(saying(chunked(*without_an_end(way)))) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert reply.status == 502
            assert "broke off" in told(way, reply.body)["message"]
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFailed)

    run_bounded(main())


@each(NATIVE)
def test_a_stream_without_a_word_whose_client_had_signs_of_life_ends_in_an_error_event(way: Way) -> None:
    async def main() -> None:
        settings = DataplaneSettings(keepalive_after_s=0.01, keepalive_s=0.01)
        async with open_door(saying(chunked()), settings=settings) as door, connected(door.url) as client:
            way.at(door)
            door.scheduler.hold = True
            client.send(way.asked())
            assert (await client.head()).status == 200
            pieces = [await client.chunk()]
            door.scheduler.place()
            while piece := await client.chunk():
                pieces.append(piece)
            assert "broke off" in told(way, b"".join(pieces))["message"]

    run_bounded(main())


@each(NATIVE)
def test_what_cannot_be_looked_at_is_taken_for_whole(way: Way) -> None:
    """A compressed stream, and one whose last event is too long to be looked at."""
    packed = chunked(
        gzip.compress(b"".join(way.events())), headers=b"content-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
    )
    events = without_an_end(way)
    long = b"data: {%b\n\n" % (b" " * 300_000)

    async def main() -> None:
        for raw in (packed, chunked(*events, long)):
            async with open_door(saying(raw)) as door, connected(door.url) as client:
                reply = await ask(door, way, client)
                assert (reply.status, reply.broken) == (200, False)

    run_bounded(main())
