"""Engines that answer oddly: with no end, with another address, or in another form than was asked for."""

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, run_bounded
from adapters.raw_client import RawClient, Reply, connected
from luftpause.core.model.ids import ToolCallId
from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.services.dataplane import passing
from luftpause.services.dataplane.settings import DataplaneSettings
from services.dataplane.door import Door, open_door
from services.dataplane.ways import (
    CHAT,
    EVERY,
    NATIVE,
    STREAMED,
    TRANSLATED,
    WHOLE,
    WHOLE_NATIVE,
    WHOLE_TRANSLATED,
    Way,
    encoded,
    told,
)

SOON = DataplaneSettings(keepalive_after_s=0.01, keepalive_s=0.01)


def each(ways: tuple[Way, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", ways, ids=lambda way: way.name)


def saying(raw: bytes) -> ScriptedEngine:
    """Return an engine that always says the same, and waits for its client to leave."""

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(raw)
        await visit.left()

    return ScriptedEngine(script)


async def ask(door: Door, way: Way, client: RawClient) -> Reply:
    way.at(door)
    client.send(way.asked())
    return await client.reply()


async def answered(way: Way, raw: bytes, *, engine: EngineKind = EngineKind.VLLM) -> Reply:
    """Return what a client gets from an engine that says this."""
    async with open_door(saying(raw)) as door, connected(door.url) as client:
        door.scheduler.engine_kind = engine
        return await ask(door, way, client)


async def answered_late(way: Way, raw: bytes, door: Door, client: RawClient) -> bytes:
    """Return what a client gets that was told 200 before its engine says this, its signs of life included."""
    way.at(door)
    door.scheduler.hold = True
    client.send(way.asked())
    assert (await client.head()).status == 200
    first = await client.chunk()
    door.scheduler.place()
    return first + (await client.rest())[0]


# No end.


@pytest.mark.interpreted
@each(STREAMED)
def test_an_engine_that_says_that_it_is_over_and_does_not_end_is_given_up(
    way: Way, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What still comes in the meantime is passed on; however much it is, it buys no more time."""
    monkeypatch.setattr(passing, "LINGER_S", 0.05)
    after = b": bye\n\n"

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(way.streamed(end=False))
        while not visit.writer.is_closing():
            visit.send(b"%x\r\n%b\r\n" % (len(after), after))
            await asyncio.sleep(0.001)
        visit.closed.set()

    async def main() -> None:
        engine = ScriptedEngine(script)
        async with open_door(engine) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert not reply.broken
            if way.native:
                assert reply.body.startswith(b"".join(way.events()) + after)
            else:
                whole = await answered(way, way.streamed())
                assert (reply.status, reply.body) == (whole.status, whole.body)
            await engine.visits[0].closed.wait()
            assert [type(ending) for ending in door.scheduler.endings] == [TurnFinished]
            client.send(way.asked())
            assert (await client.reply()).status == 200, "the client's connection goes on"

    run_bounded(main())
    assert "kept the answer open" in str([vars(record) for record in caplog.records])


@pytest.mark.interpreted
@each(WHOLE_TRANSLATED)
def test_an_answer_that_is_put_together_does_not_wait_for_an_end_that_was_told(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "LINGER_S", 0.01)

    async def main() -> None:
        reply = await answered(way, way.streamed(end=False), engine=EngineKind.LLAMA_CPP)
        assert reply.body == (await answered(way, way.streamed(), engine=EngineKind.LLAMA_CPP)).body

    run_bounded(main())


@pytest.mark.interpreted
@each(STREAMED)
@pytest.mark.parametrize("begun", [True, False], ids=["in the middle", "at once"])
def test_an_engine_that_tells_of_an_error_and_does_not_end_is_given_up(
    way: Way, begun: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its turn has failed by then; what still comes buys it no more time."""
    monkeypatch.setattr(passing, "LINGER_S", 0.05)

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(way.broken(begun=begun))
        while not visit.writer.is_closing():
            visit.send(b"7\r\n: bye\n\n\r\n")
            await asyncio.sleep(0.001)
        visit.closed.set()

    async def main() -> None:
        engine = ScriptedEngine(script)
        async with open_door(engine) as door, connected(door.url) as client:
            was_there: list[bool] = []
            door.scheduler.on_report = lambda _: was_there.append(not engine.visits[0].closed.is_set())
            reply = await ask(door, way, client)
            assert (reply.status, reply.broken) == (200, way.cuts_failures)
            assert b"no room for this" in reply.body
            assert b"[DONE]" not in reply.body
            await engine.visits[0].closed.wait()
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFailed)
            assert "no room for this" in ending.cause
            assert all(was_there), "its slot is free before it is given up"

    run_bounded(main())
    assert "it told of an error and kept the answer open" in str([vars(record) for record in caplog.records])


@pytest.mark.interpreted
@each(WHOLE_TRANSLATED)
def test_an_error_in_an_answer_that_is_put_together_is_told_although_the_engine_does_not_end(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "LINGER_S", 0.01)

    async def main() -> None:
        reply = await answered(way, way.broken(begun=True), engine=EngineKind.LLAMA_CPP)
        assert reply.status == 502
        assert "no room for this" in told(way, reply.body)["message"]

    run_bounded(main())


def test_an_engine_that_ends_in_time_keeps_its_connection() -> None:
    seen = asyncio.Event()

    async def script(visit: Visit) -> None:
        while True:
            await visit.request()
            visit.send(CHAT.streamed(end=False))
            await seen.wait()
            visit.send(b"0\r\n\r\n")

    async def main() -> None:
        engine = ScriptedEngine(script)
        async with open_door(engine) as door, connected(door.url) as client:
            for _ in range(2):
                client.send(CHAT.asked())
                await client.head()
                while piece := await client.chunk():
                    if b"[DONE]" in piece:
                        seen.set()
            assert len(engine.visits) == 1

    run_bounded(main())


@pytest.mark.interpreted
@each(EVERY)
def test_an_engine_that_refuses_and_does_not_end_is_given_up_and_its_slot_is_free_before(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "REFUSAL_S", 0.02)
    said = b'{"error":{"message":"no room for this"}}'
    raw = chunked(said, headers=b"content-type: application/json\r\n", end=False).replace(b"200 OK", b"413 No", 1)

    async def main() -> None:
        engine = saying(raw)
        async with open_door(engine) as door, connected(door.url) as client:
            was_there: list[bool] = []
            door.scheduler.on_report = lambda _: was_there.append(not engine.visits[0].closed.is_set())
            reply = await ask(door, way, client)
            assert (reply.status, reply.broken) == (413, False)
            assert reply.body == said if way.native else told(way, reply.body)["message"] == "no room for this"
            await engine.visits[0].closed.wait()
            assert was_there == [True]
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFailed)
            assert ending.cause == "engine a: status 413"

    run_bounded(main())


# No piece of an answer.

GARBAGE = (b"nonsense", b"[1]", b"7", b'{"choices":[', b'{"choices":7}', b"{}\0", b"\xff")


@pytest.mark.interpreted
@each(TRANSLATED)
@pytest.mark.parametrize("begun", [True, False], ids=["in the middle", "at once"])
@pytest.mark.parametrize("garbage", range(len(GARBAGE)))
def test_an_engine_whose_answer_cannot_be_said_is_let_go_at_once_and_its_slot_is_free(
    way: Way, begun: bool, garbage: int
) -> None:
    """Its client is told, so nobody waits for the rest; and a call before it leaves no run paused."""

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(chunked(*way.events()[: 3 if begun else 0], b"data: %b\n\n" % GARBAGE[garbage], end=False))
        await visit.left()

    async def main() -> None:
        engine = ScriptedEngine(script)
        async with open_door(engine) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert (reply.status, reply.broken) == (200, way.cuts_failures)
            assert told(way, reply.body)["message"] == "the engine sent what is no Chat Completions answer"
            await engine.visits[0].closed.wait()
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFailed)
            assert ending.cause == "engine a: the engine sent what is no Chat Completions answer"
            if not way.cuts_failures:
                client.send(way.asked())
                assert (await client.reply()).status == 200, "the client's connection goes on"

    run_bounded(main())


@each(TRANSLATED)
def test_a_stream_that_breaks_off_has_failed_for_the_scheduler_as_for_its_client(way: Way) -> None:
    async def main() -> None:
        async with open_door(saying(chunked(*way.events()[:3]))) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert told(way, reply.body)["message"] == "the engine's answer broke off"
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFailed), "its call was never whole, so its run is not paused"

    run_bounded(main())


@each((*WHOLE_NATIVE[:1], *WHOLE_TRANSLATED))
def test_an_answer_that_is_put_together_has_no_hole(way: Way) -> None:
    raw = chunked(*way.events()[:2], b"data: nonsense\n\n", *way.events()[2:])

    async def main() -> None:
        reply = await answered(way, raw, engine=EngineKind.LLAMA_CPP)
        assert reply.status == 502
        assert "no piece of an answer" in told(way, reply.body)["message"]

    run_bounded(main())


# Written in any way that the standard of event streams allows.

MARK = b"\xef\xbb\xbf"


def framed(stream: bytes) -> bytes:
    """Return a stream with all that a reader has to pass over: fields, comments, pings, data in several lines."""
    noted = stream.replace(b"data: ", b": waiting\nid: 1\nretry: 9\nevent: message\ndata:")
    return b": hello\n\nevent: ping\n\n" + noted.replace(b',"', b',\ndata:  "').replace(b', "', b',\ndata:  "')


WRITTEN: dict[str, Callable[[bytes], bytes]] = {
    "a byte order mark": lambda stream: MARK + stream,
    "CRLF": lambda stream: stream.replace(b"\n", b"\r\n"),
    "CR": lambda stream: stream.replace(b"\n", b"\r"),
    "CR, with a mark": lambda stream: MARK + stream.replace(b"\n", b"\r"),
    "mixed": lambda stream: stream.replace(b"\n\n", b"\r\r\n").replace(b"}\r", b"}\n\r"),
    "no space": lambda stream: stream.replace(b"data: ", b"data:"),
    "fields and comments": framed,
    "fields and comments, CR, with a mark": lambda stream: MARK + framed(stream).replace(b"\n", b"\r"),
    "done twice": lambda stream: stream.replace(b"data: [DONE]\n\n", b"data: [DONE]\n\n" * 2),
    "done is missing": lambda stream: stream.replace(b"data: [DONE]\n\n", b""),
    "no final blank line": lambda stream: stream.removesuffix(b"\n\n"),
}


@pytest.mark.parametrize("written", WRITTEN)
@each((*STREAMED, *WHOLE_NATIVE[:1], *WHOLE_TRANSLATED))
def test_an_answer_is_the_same_however_its_events_are_written_and_cut(way: Way, written: str) -> None:
    """Whole answers are put together from the same events, by a kind of engine that is asked for them."""
    engine = EngineKind.VLLM if way.stream else EngineKind.LLAMA_CPP
    plain = b"".join(way.events())
    stream = WRITTEN[written](plain)
    pieces = [stream[at : at + 1] for at in range(len(stream))]

    async def main() -> None:
        async with open_door(saying(way.streamed())) as door, connected(door.url) as client:
            door.scheduler.engine_kind = engine
            expected = await ask(door, way, client)
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFinished)
        for raw in (chunked(stream), chunked(*pieces)):
            async with open_door(saying(raw)) as door, connected(door.url) as client:
                door.scheduler.engine_kind = engine
                reply = await ask(door, way, client)
                assert reply.status == 200
                assert reply.body == (stream if way.native and way.stream else expected.body)
                [ended] = door.scheduler.endings
                assert isinstance(ended, TurnFinished)
                assert replace(ended, turn=ending.turn) == ending

    run_bounded(main())


# Compressed, unasked.

GZIP = b'content-encoding: gzip\r\netag: "of the compressed"\r\n'


@each((*TRANSLATED, *WHOLE_TRANSLATED))
def test_a_compressed_answer_that_has_to_be_said_in_other_words_is_a_502_that_says_so(way: Way) -> None:
    body = gzip.compress(b"".join(way.events()) if way.stream else encoded(WHOLE))
    kind = b"text/event-stream" if way.stream else b"application/json"

    async def main() -> None:
        reply = await answered(way, answer(body, headers=b"content-type: %b\r\n" % kind + GZIP))
        assert (reply.status, reply.header(b"content-encoding")) == (502, None)
        assert "its answer is compressed (gzip), although" in told(way, reply.body)["message"]

    run_bounded(main())


@each((*TRANSLATED, *WHOLE_TRANSLATED))
def test_a_compressed_refusal_keeps_its_status_and_no_header_of_a_body_that_is_not_sent(way: Way) -> None:
    raw = answer(gzip.compress(b"{}"), status=b"413 No", headers=b"content-type: application/json\r\n" + GZIP)

    async def main() -> None:
        reply = await answered(way, raw)
        assert (reply.status, reply.header(b"content-encoding"), reply.header(b"etag")) == (413, None, None)
        assert "413" in told(way, reply.body)["message"]

    run_bounded(main())


@each(WHOLE_NATIVE)
def test_a_compressed_answer_in_the_clients_own_words_is_passed_on_as_it_is(way: Way) -> None:
    body = gzip.compress(encoded(WHOLE))

    async def main() -> None:
        reply = await answered(way, answer(body, headers=b"content-type: application/json\r\n" + GZIP))
        assert (reply.status, reply.header(b"content-encoding"), reply.body) == (200, b"gzip", body)

    run_bounded(main())


# Another address.

ELSEWHERE = b"location: https://me:secret@else.example:81/v1/x?key=secret#secret\r\n"


def redirect(status: int, location: bytes = ELSEWHERE) -> bytes:
    return answer(b"<html>moved", status=b"%d Elsewhere" % status, headers=location)


@each(EVERY)
def test_a_redirect_is_a_502_that_names_engine_and_address_and_is_followed_by_nobody(way: Way) -> None:
    async def main() -> None:
        engine = saying(redirect(307))
        async with open_door(engine) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert (reply.status, reply.header(b"location")) == (502, None)
            assert reply.header(b"content-type") == b"application/json"
            message = told(way, reply.body)["message"]
            says = "engine a: it redirects to https://else.example:81/v1/x (status 307), which is not followed"
            assert message.startswith(says)
            assert b"secret" not in reply.body
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFailed)
            assert ending.cause == message
            assert len(engine.visits) == 1

    run_bounded(main())


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 308, 399])
@pytest.mark.parametrize("location", [ELSEWHERE, b"", b"location: \xff/" + b"x" * 2000 + b"\r\n"])
def test_every_status_that_sends_away_is_a_redirect_wherever_it_leads(status: int, location: bytes) -> None:
    async def main() -> None:
        reply = await answered(CHAT, redirect(status, location))
        message = json.loads(reply.body)["error"]["message"]
        assert reply.status == 502
        assert f"(status {status})" in message
        assert len(message) < 500

    run_bounded(main())


@each(STREAMED)
def test_after_the_200_a_redirect_is_an_event(way: Way) -> None:
    async def main() -> None:
        async with open_door(saying(redirect(302)), settings=SOON) as door, connected(door.url) as client:
            body = await answered_late(way, redirect(302), door, client)
            assert "(status 302)" in told(way, body)["message"]
            assert b"secret" not in body

    run_bounded(main())


# Another form.


@each(WHOLE_TRANSLATED)
def test_who_wants_no_stream_and_is_sent_one_gets_the_whole_in_other_words(way: Way) -> None:
    async def main() -> None:
        wanted = await answered(way, way.whole())
        async with open_door(saying(way.streamed())) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert (reply.status, reply.header(b"content-type")) == (200, b"application/json")
            assert json.loads(reply.body) == json.loads(wanted.body)
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFinished)
            assert ending.tool_calls == (ToolCallId("call_1"),)
            assert ending.usage is not None

    run_bounded(main())


@each(TRANSLATED)
def test_who_wants_a_stream_and_is_sent_the_whole_gets_a_stream_in_other_words(way: Way) -> None:
    async def main() -> None:
        wanted = await answered(way, way.streamed())
        async with open_door(saying(way.whole())) as door, connected(door.url) as client:
            reply = await ask(door, way, client)
            assert (reply.status, reply.header(b"content-type")) == (200, wanted.header(b"content-type"))
            assert reply.body == wanted.body
            [ending] = door.scheduler.endings
            assert isinstance(ending, TurnFinished)
            assert ending.tool_calls == (ToolCallId("call_1"),)
            assert ending.usage is not None

    run_bounded(main())


@each(TRANSLATED)
def test_so_it_does_after_the_200(way: Way) -> None:
    async def main() -> None:
        wanted = await answered(way, way.streamed())
        async with open_door(saying(way.whole()), settings=SOON) as door, connected(door.url) as client:
            body = await answered_late(way, way.whole(), door, client)
            assert body.endswith(wanted.body)

    run_bounded(main())


@each(NATIVE)
def test_where_the_engine_speaks_the_dialect_the_whole_passes_to_who_wants_a_stream(way: Way) -> None:
    async def main() -> None:
        reply = await answered(way, way.whole())
        assert (reply.status, reply.header(b"content-type")) == (200, b"application/json")
        assert reply.body == encoded(WHOLE)

    run_bounded(main())


@each(WHOLE_NATIVE)
def test_where_the_engine_speaks_the_dialect_a_stream_passes_to_who_wants_none(way: Way) -> None:
    async def main() -> None:
        reply = await answered(way, way.streamed())
        assert (reply.status, reply.header(b"content-type")) == (200, b"text/event-stream")
        assert reply.body == b"".join(way.events())

    run_bounded(main())


@each(NATIVE)
def test_after_the_200_a_chat_becomes_a_stream_and_what_cannot_an_error(way: Way) -> None:
    async def main() -> None:
        async with open_door(saying(way.whole()), settings=SOON) as door, connected(door.url) as client:
            body = await answered_late(way, way.whole(), door, client)
            [ending] = door.scheduler.endings
            if way is not CHAT:
                assert told(way, body)["message"] == "engine a: its answer is no event stream"
                assert isinstance(ending, TurnFailed)
                return
            assert body.endswith(b"data: [DONE]\n\n")
            documents = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: {")]
            deltas = [choice["delta"] for each in documents for choice in json.loads(each)["choices"]]
            assert "".join(delta.get("content") or "" for delta in deltas) == "grüße"
            assert isinstance(ending, TurnFinished)
            assert ending.tool_calls == (ToolCallId("call_1"),)

    run_bounded(main())


@pytest.mark.parametrize("how", ["dies", "says nothing"])
@each(STREAMED)
def test_after_the_200_an_answer_that_was_never_told_of_fails_as_an_event(way: Way, how: str) -> None:
    """It is collected to be said in another form, so its client has seen nothing of it."""
    raw = way.whole()[:-9] if how == "dies" else chunked(b'{"usage":{}}', headers=b"content-type: application/json\r\n")

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(raw)

    async def main() -> None:
        async with open_door(ScriptedEngine(script), settings=SOON) as door, connected(door.url) as client:
            body = await answered_late(way, raw, door, client)
            assert told(way, body)["message"].startswith("engine a: ")
            assert isinstance(door.scheduler.endings[0], TurnFailed)

    run_bounded(main())


def test_llama_server_may_answer_whole_although_it_was_asked_for_a_stream() -> None:
    async def main() -> None:
        for way in (WHOLE_NATIVE[0], *WHOLE_TRANSLATED):
            reply = await answered(way, way.whole(), engine=EngineKind.LLAMA_CPP)
            assert reply.status == 200
            assert json.loads(reply.body) == json.loads((await answered(way, way.whole())).body)

    run_bounded(main())
