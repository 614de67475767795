"""What passes through is the engine's bytes, in order, as they come."""

import asyncio
import hashlib
import json
import random

import pytest

from adapters.engine_http.scripted_engine import Received, ScriptedEngine, Visit, answer, chunked, run_bounded
from adapters.raw_client import connected
from luftpause.core.dialects.said import Utterance, marks_of_answer, said_in
from luftpause.core.model.ids import ToolCallId, ToolName, TurnId
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import FirstTokenSeen, TurnFinished, TurnReport
from services.dataplane.door import BODY, chat_bytes, open_door

pytestmark = pytest.mark.usefixtures("each_loop")

USAGE = {"prompt_tokens": 9, "completion_tokens": 64, "prompt_tokens_details": {"cached_tokens": 4}}


def event(**fields: object) -> bytes:
    return b"data: " + json.dumps({"id": "chatcmpl-1", **fields}, ensure_ascii=False).encode() + b"\n\n"


def token_events(count: int) -> list[bytes]:
    events = [
        event(choices=[{"index": 0, "delta": {"content": f"tøken {at} 🌬"}, "finish_reason": None}], usage=None)
        for at in range(count)
    ]
    call = {"index": 0, "id": "call_9", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    events.append(event(choices=[{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]))
    events.append(event(choices=[], usage=USAGE))
    return [*events, b"data: [DONE]\n\n"]


def finished(turn: TurnId, prompt: str = "hi") -> TurnFinished:
    """Return how a turn ends that was answered with `token_events`."""
    return TurnFinished(
        turn=turn,
        finish="tool_calls",
        usage=Usage(prompt_tokens=9, completion_tokens=64, cached_tokens=4),
        tool_calls=(ToolCallId("call_9"),),
        marks=marks_of_answer(said_in([Utterance("user", prompt)], "anonymous\0m"), "", has_calls=True),
        tools=(ToolName("f"),),
    )


def cutting(raw: bytes, cuts: list[int]) -> ScriptedEngine:
    """Return an engine that sends its answer in pieces, each in a packet of its own as far as the socket lets it."""

    async def script(visit: Visit) -> None:
        while True:
            await visit.request()
            for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
                visit.send(raw[start:end])
                await asyncio.sleep(0)
                await asyncio.sleep(0)

    return ScriptedEngine(script)


def test_a_large_body_and_a_stream_of_64_chunks_pass_byte_identical() -> None:
    prompt = random.Random(1).randbytes(128 * 1024).hex()
    body = json.dumps({"messages": [{"role": "user", "content": prompt}], "model": "m", "stream": True}).encode()
    events = token_events(64)
    received: list[Received] = []

    async def script(visit: Visit) -> None:
        received.append(await visit.request())
        visit.send(chunked(*events))
        await visit.left()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            reply = await door.chat(body=body)
            assert len(body) > 256 * 1024
            assert hashlib.sha256(received[0].body).digest() == hashlib.sha256(body).digest()
            assert hashlib.sha256(reply.body).digest() == hashlib.sha256(b"".join(events)).digest()
            assert not reply.broken
            assert door.scheduler.kinds == ["FirstTokenSeen", "TurnFinished"]
            turn = door.scheduler.offers[0].turn
            assert door.scheduler.reports == [
                FirstTokenSeen(turn=turn),
                finished(turn, prompt),
            ]

    run_bounded(main())


@pytest.mark.parametrize(
    "raw",
    [
        chunked(*token_events(1)),
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + b"".join(token_events(1)),
        answer(
            json.dumps(
                {
                    "choices": [
                        {
                            "message": {"tool_calls": [{"id": "call_9", "function": {"name": "f"}}]},
                            "finish_reason": "tool_calls",
                        }
                    ],
                    "usage": USAGE,
                }
            ).encode()
        ),
    ],
    ids=["chunked", "until close", "content-length"],
)
def test_an_answer_is_identical_wherever_the_engines_bytes_are_cut(raw: bytes) -> None:
    until_close = b"chunked" not in raw and b"content-length" not in raw
    cuts = iter(range(1, len(raw)))

    async def script(visit: Visit) -> None:
        while True:
            await visit.request()
            cut = next(cuts)
            visit.send(raw[:cut])
            for _ in range(4):
                await asyncio.sleep(0)
            visit.send(raw[cut:])
            if until_close:
                return

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door, connected(door.url) as client:
            bodies = set()
            for _ in range(1, len(raw)):
                client.send(chat_bytes())
                reply = await client.reply()
                assert not reply.broken
                bodies.add(reply.body)
            assert len(bodies) == 1
            body = bodies.pop()
            assert body == (b"".join(token_events(1)) if b"event-stream" in raw else raw[-len(body) :])
            endings = door.scheduler.endings
            assert len(endings) == len(raw) - 1
            assert endings == [finished(offer.turn) for offer in door.scheduler.offers]

    run_bounded(main())


@pytest.mark.parametrize("seed", range(5))
def test_a_stream_of_64_chunks_is_identical_at_random_cuts(seed: int) -> None:
    chance = random.Random(seed)
    events = token_events(64)
    raw = chunked(*events)
    cuts = sorted(chance.sample(range(1, len(raw)), chance.choice([1, 10, 100, 1000])))

    async def main() -> None:
        async with open_door(cutting(raw, cuts)) as door:
            reply = await door.chat()
            assert hashlib.sha256(reply.body).digest() == hashlib.sha256(b"".join(events)).digest()
            assert door.scheduler.endings == [finished(door.scheduler.offers[0].turn)]

    run_bounded(main())


def test_each_chunk_reaches_the_client_before_the_engine_sends_the_next() -> None:
    events = token_events(64)
    seen = [asyncio.Event() for _ in events]

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        await head_seen.wait()
        for piece, passed in zip(events, seen, strict=True):
            visit.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await passed.wait()
        visit.send(b"0\r\n\r\n")
        await visit.left()

    head_seen = asyncio.Event()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door, connected(door.url) as client:
            client.send(chat_bytes())
            assert (await client.head()).status == 200
            head_seen.set()
            for piece, passed in zip(events, seen, strict=True):
                assert await client.chunk() == piece
                passed.set()
            assert await client.chunk() == b""

    run_bounded(main())


@pytest.mark.parametrize("streamed", [True, False])
def test_a_turn_has_ended_before_its_client_can_know(streamed: bool) -> None:
    """A client goes on at [DONE] or at the last byte announced: its next turn must find the run paused."""
    final = b"0\r\n\r\n"
    events = token_events(1)
    go_on = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.request()
        if streamed:
            visit.send(chunked(*events, end=False))
            await go_on.wait()  # the final chunk comes only after the client has acted on [DONE]
            visit.send(final)
        else:
            visit.send(answer(b'{"choices":[{"finish_reason":"stop"}]}'))
        await visit.left()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door, connected(door.url) as client:
            known = []
            client.send(chat_bytes())
            reply = await client.head()
            if streamed:
                got = b""
                while not got.endswith(b"[DONE]\n\n"):
                    got += await client.chunk()
                known = list(door.scheduler.kinds)
                go_on.set()
                assert await client.chunk() == b""
            else:
                await client.reader.readexactly(int(reply.header(b"content-length") or 0))
                known = list(door.scheduler.kinds)
            assert known == ["FirstTokenSeen", "TurnFinished"]

    run_bounded(main())


def test_a_slow_reader_slows_the_engine() -> None:
    piece = b"x" * 65536
    count = 1024
    sent: list[int] = []

    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(count):
            visit.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await visit.writer.drain()
            sent.append(len(piece))
        visit.send(b"0\r\n\r\n")
        await visit.left()

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door, connected(door.url) as client:
            client.read_no_more()
            client.send(chat_bytes())
            before = -1
            while before != len(sent) or not sent:
                before = len(sent)
                await asyncio.sleep(0.05)
            assert sum(sent) < 32 * 1024 * 1024  # what the sockets' own buffers hold
            client.read_again()
            reply = await client.reply()
            assert len(reply.body) == count * len(piece)
            assert reply.body == piece * count

    run_bounded(main())


def test_connections_to_client_and_engine_are_kept() -> None:
    async def script(visit: Visit) -> None:
        while True:
            await visit.request()
            visit.send(chunked(*token_events(2)))

    async def main() -> None:
        engine = ScriptedEngine(script)
        async with open_door(engine) as door, connected(door.url) as client:
            for _ in range(10):
                client.send(chat_bytes())
                assert (await client.reply()).status == 200
            assert len(engine.visits) == 1

    run_bounded(main())


def test_many_turns_at_once_stay_apart() -> None:
    async def script(visit: Visit) -> None:
        while True:
            received = await visit.request()
            user = json.loads(received.body)["user"]
            for piece in (b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(user), user.encode()):
                visit.send(piece)
                await asyncio.sleep(0)

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:

            async def one(at: int) -> None:
                async with connected(door.url) as client:
                    for turn in range(8):
                        user = f"user-{at}-{turn}"
                        client.send(chat_bytes(body=json.dumps({"model": "m", "user": user}).encode()))
                        assert (await client.reply()).body == user.encode()

            await asyncio.gather(*(one(at) for at in range(24)))
            assert len(door.scheduler.endings) == 24 * 8

    run_bounded(main())


def test_a_report_that_fails_does_not_leave_the_turn_open() -> None:
    def refuse(report: TurnReport) -> None:
        if isinstance(report, FirstTokenSeen):
            raise RuntimeError("planted")

    async def script(visit: Visit) -> None:
        while True:
            await visit.request()
            visit.send(chunked(*token_events(2)))

    async def main() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.on_report = refuse
            reply = await door.chat()
            assert reply.broken
            assert door.scheduler.kinds == ["FirstTokenSeen", "TurnFailed"]
            door.scheduler.on_report = lambda report: None
            assert not (await door.chat(body=BODY)).broken

    run_bounded(main())
