"""Bad input, failing engines and refusals: a clear error each, no turn left open, and the door still answers."""

import asyncio
import json

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, eventually, run_bounded
from adapters.raw_client import connected, fetch, request
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.replicas import Endpoint
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.events import TurnFailed
from luftpause.ports.scheduler import LinkRefusedError, TurnRefusedError
from luftpause.services.dataplane.settings import DataplaneSettings
from services.dataplane.door import BODY, CHAT, JSON, RUN, chat_bytes, open_door


def message(body: bytes) -> str:
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "code"}
    return str(error["message"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "not valid JSON"),
        (b"hello", "not valid JSON"),
        (b"[]", "expected `object`"),
        (b"{}", "`model` is missing"),
        (b'{"model":""}', "`model` is empty"),
        (b'{"model":7}', "at `$.model`"),
        (b'{"model":"m","stream":"on"}', "at `$.stream`"),
        (b'{"model":"m","model":"n"}', "more than once"),
        (b'{"model":"m","x":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_body_that_cannot_be_routed(body: bytes, expected: str) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await door.chat(body=body)
            assert reply.status == 400
            assert expected in message(reply.body)
            assert (reply.header(RUN) or b"").startswith(b"run_")
            assert door.scheduler.offers == []
            await door.still_answers()

    run_bounded(main())


@pytest.mark.parametrize(
    ("header", "shape"),
    [(b"x-session-id: s", TurnShape.ASIDE), (b"x-luftpause-run-id: r", TurnShape.IN_RUN)],
)
def test_a_turn_without_tools_is_aside_unless_it_names_its_run_itself(header: bytes, shape: TurnShape) -> None:
    async def main() -> None:
        async with open_door() as door:
            assert (await door.chat(header)).status == 502  # nobody listens there
            assert [offer.shape for offer in door.scheduler.offers] == [shape]

    run_bounded(main())


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"x-luftpause-class: urgent", "x-luftpause-class is 'urgent': it must be 'interactive' or 'batch'"),
        (b"x-luftpause-class:", "x-luftpause-class is ''"),
        (b"x-luftpause-run-id: " + b"r" * 129, "x-luftpause-run-id must be 1 to 128 printable ASCII"),
        (b"x-luftpause-run-id: r\xc3\xb6", "x-luftpause-run-id must be"),
        (b"x-luftpause-parent: \t r\tx", "x-luftpause-parent must be"),
    ],
)
def test_a_header_of_ours_that_makes_no_sense(header: bytes, expected: str) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await door.chat(header)
            assert reply.status == 400
            assert expected in message(reply.body)
            assert reply.header(RUN) is not None
            await door.still_answers()

    run_bounded(main())


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"x-none: 1", "it is missing"),
        (b"content-type: text/plain", "it is 'text/plain'"),
        (b"content-type: application/x-www-form-urlencoded", "application/x-www-form-urlencoded"),
        (b"content-type: text/plain; application/json", "text/plain"),
    ],
)
def test_a_body_that_does_not_call_itself_json(header: bytes, expected: str) -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await fetch(door.url, b"POST", CHAT, header, body=BODY)
            assert reply.status == 415
            assert expected in message(reply.body)
            await door.still_answers()

    run_bounded(main())


def test_other_spellings_of_json_are_fine() -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(answer(b"{}"))

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            for spelling in (b"Application/JSON; charset=utf-8", b"application/vnd.api+json"):
                reply = await fetch(door.url, b"POST", CHAT, b"content-type: " + spelling, body=BODY)
                assert reply.status == 200

    run_bounded(main())


def test_a_body_of_40_mb_is_refused_before_it_comes() -> None:
    async def main() -> None:
        async with open_door() as door, connected(door.url) as client:
            client.send(request(b"POST", CHAT, JSON, b"content-length: 40000000", b"expect: 100-continue"))
            reply = await client.reply()
            assert reply.status == 413
            assert "33,554,432 bytes" in message(reply.body)
            assert (await door.chat(body=b'{"model":"' + b"m" * 40_000_000 + b'"}')).status == 413
            await door.still_answers()

    run_bounded(main())


def test_a_chunked_body_is_refused_as_soon_as_it_is_too_long() -> None:
    async def main() -> None:
        async with open_door(settings=DataplaneSettings(max_body_bytes=100_000)) as door:
            async with connected(door.url) as client:
                client.send(request(b"POST", CHAT, JSON, b"transfer-encoding: chunked"))
                for _ in range(11):
                    client.send(b"%x\r\n%b\r\n" % (10_000, b" " * 10_000))
                assert (await client.reply()).status == 413
            await door.still_answers()

    run_bounded(main())


def test_a_chunked_body_is_taken_like_any_other() -> None:
    async def script(visit: Visit) -> None:
        visit.send(answer((await visit.request()).body))

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door, connected(door.url) as client:
            client.send(request(b"POST", CHAT, JSON, b"transfer-encoding: chunked"))
            for at in range(0, len(BODY), 9):
                piece = BODY[at : at + 9]
                client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            client.send(b"0\r\n\r\n")
            assert (await client.reply()).body == BODY

    run_bounded(main())


def test_a_body_that_does_not_come_is_given_up() -> None:
    async def main() -> None:
        async with open_door(settings=DataplaneSettings(body_timeout_s=0.02)) as door:
            async with connected(door.url) as client:
                client.send(request(b"POST", CHAT, JSON, b"content-length: 1000") + BODY)
                reply = await client.reply()
                assert reply.status == 408
                assert "within 0.02 s" in message(reply.body)
            await door.still_answers()

    run_bounded(main())


@pytest.mark.parametrize(
    "raw",
    [
        request(b"POST", CHAT, JSON, b"x-luftpause-caller: a\0b", body=BODY),
        request(b"POST", CHAT, JSON, b"content-length: -1") + BODY,
        request(b"POST", CHAT, JSON, b"content-length: 71", body=BODY),
        request(b"POST", CHAT, JSON, b"transfer-encoding: chunked", body=BODY),
    ],
    ids=["NUL in a header", "negative length", "two lengths", "length and chunks"],
)
def test_what_is_no_http(raw: bytes) -> None:
    async def main() -> None:
        async with open_door() as door:
            async with connected(door.url) as client:
                client.send(raw)
                reply = await client.reply()
                assert reply.status == 400
                assert "not valid HTTP" in message(reply.body)
                assert (reply.header(RUN) or b"").startswith(b"run_")
            assert door.scheduler.offers == []
            await door.still_answers()

    run_bounded(main())


def test_a_content_length_that_is_too_short_cuts_the_body_and_ends_the_connection() -> None:
    async def main() -> None:
        async with open_door() as door, connected(door.url) as client:
            client.send(request(b"POST", CHAT, JSON, b"content-length: %d" % (len(BODY) - 5)) + BODY)
            reply = await client.reply()
            assert reply.status == 400
            assert "not valid JSON" in message(reply.body)
            assert await client.ended()
            await door.still_answers()

    run_bounded(main())


def test_an_unknown_model_is_a_404_at_once() -> None:
    async def main() -> None:
        async with open_door() as door:
            reply = await door.chat(b"x-luftpause-run-id: mine", body=b'{"model":"other"}')
            assert reply.status == 404
            assert message(reply.body) == "no Generative replica serves model 'other'"
            assert json.loads(reply.body)["error"]["code"] == "unknown_model"
            assert reply.header(RUN) == b"mine"
            assert door.scheduler.reports == []
            await door.still_answers()

    run_bounded(main())


def test_a_refusal_while_held_is_told() -> None:
    async def main() -> None:
        async with open_door() as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(chat_bytes())
            await eventually(lambda: len(door.scheduler.tickets) == 1)
            refusal = Refusal(reason=RefusalReason.EXPIRED, message="held for too long")
            door.scheduler.tickets[0].placement.set_exception(TurnRefusedError(refusal))
            reply = await client.reply()
            assert (reply.status, message(reply.body)) == (503, "held for too long")
            assert reply.header(RUN) == b"run_minted_1"
            assert door.scheduler.reports == []

    run_bounded(main())


def test_a_scheduler_that_drops_the_turn_or_refuses_the_link_is_a_503() -> None:
    async def main() -> None:
        async with open_door() as door, connected(door.url) as client:
            door.scheduler.hold = True
            client.send(chat_bytes())
            await eventually(lambda: len(door.scheduler.tickets) == 1)
            door.scheduler.tickets[0].placement.cancel()
            assert (await client.reply()).status == 503
            door.scheduler.breaks_with = LinkRefusedError("the scheduler does not accept this token")
            client.send(chat_bytes())
            reply = await client.reply()
            assert (reply.status, message(reply.body)) == (503, "the scheduler does not accept this token")
            assert door.scheduler.kinds == ["TurnFailed", "TurnFailed"]
            await door.still_answers()

    run_bounded(main())


def test_a_fault_of_ours_is_a_500_and_ends_the_turn() -> None:
    async def main() -> None:
        async with open_door() as door:
            door.scheduler.breaks_with = RuntimeError("planted")
            reply = await door.chat()
            assert reply.status == 500
            assert "planted" not in message(reply.body)
            assert reply.header(RUN) is not None
            assert door.scheduler.kinds == ["TurnFailed"]
            await door.still_answers()

    run_bounded(main())


def test_an_engine_out_of_reach_is_a_502_that_names_it() -> None:
    async def main() -> None:
        async with open_door() as door:
            door.scheduler.endpoint = Endpoint(url="http://127.0.0.1:1")
            reply = await door.chat(b"x-luftpause-run-id: mine")
            assert reply.status == 502
            assert message(reply.body) == "engine a: connection refused by 127.0.0.1:1"
            assert reply.header(RUN) == b"mine"
            turn = door.scheduler.offers[0].turn
            assert door.scheduler.kinds == ["TurnFailed"]
            assert door.scheduler.reports[0] == TurnFailed(turn=turn, cause=message(reply.body))

    run_bounded(main())


def test_an_engine_that_speaks_no_http_is_a_502() -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(b"SSH-2.0-OpenSSH\r\n")
        await visit.left()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            reply = await door.chat()
            assert reply.status == 502
            assert message(reply.body).startswith("engine a: its answer is not valid HTTP")
            assert door.scheduler.kinds == ["TurnFailed"]

    run_bounded(main())


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (chunked(b"data: {}\n\n", b"data: {}\n\n", end=False), b"data: {}\n\ndata: {}\n\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{half", b"{half"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", b""),
    ],
    ids=["chunked", "content-length", "no byte"],
)
def test_an_engine_that_dies_in_the_middle_ends_the_connection_without_an_end(
    raw: bytes, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(raw)

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            reply = await door.chat()
            assert (reply.status, reply.body, reply.broken) == (200, body, True)
            assert door.scheduler.kinds == [*(["FirstTokenSeen"] if body else []), "TurnFailed"]
            assert [record.message for record in caplog.records] == ["turn_failed"], "told once, and as what it is"
            await door.still_answers()

    run_bounded(main())


@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"503 Service Unavailable", b"400 Bad Request"])
def test_an_engines_own_refusal_passes_unchanged(status: bytes) -> None:
    refusal = b'{"object":"error","message":"busy"}'

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(answer(refusal, status=status, headers=b"Retry-After: 7\r\ncontent-type: application/json\r\n"))
        await visit.left()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            reply = await door.chat()
            assert reply.status == int(status[:3])
            assert reply.body == refusal
            assert reply.header(b"retry-after") == b"7"
            assert reply.header(b"content-length") == b"%d" % len(refusal)
            assert reply.header(RUN) == b"run_minted_1"
            turn = door.scheduler.offers[0].turn
            assert door.scheduler.kinds == ["TurnFailed"]
            assert door.scheduler.reports[0] == TurnFailed(
                turn=turn,
                cause=f"engine a: status {reply.status}",
                retry_after_s=7.0 if reply.status in (429, 503) else None,
            )

    run_bounded(main())


def test_an_error_event_in_the_stream_passes_and_fails_the_turn() -> None:
    events = b'data: {"choices":[]}\n\n', b'data: {"error": {"message": "out of memory"}}\n\n'

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(chunked(*events))
        await visit.left()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            assert (await door.chat()).body == b"".join(events)
            turn = door.scheduler.offers[0].turn
            cause = 'engine a: {"message": "out of memory"}'
            assert door.scheduler.endings == [TurnFailed(turn=turn, cause=cause)]

    run_bounded(main())


def test_shutting_down_aborts_what_is_open_and_ends_its_turn() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            arrived.set()
            await visit.left()

        arrived = asyncio.Event()
        engine = ScriptedEngine(script)
        async with open_door(engine) as door:
            asking = asyncio.create_task(door.chat())
            await arrived.wait()
            assert door.scheduler.kinds == []
            assert door.server._state is not None
            await door.server._state.tasks.cancel()  # what the server does to applications that outlive the grace
            await eventually(lambda: door.scheduler.kinds == ["TurnFailed"])
            await engine.visits[0].closed.wait()
            reply = await asking
            assert reply.status == 500

    run_bounded(main())
