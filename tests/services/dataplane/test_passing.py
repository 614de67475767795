"""What is learned of an answer on its way: the ids that its client will echo and the text that it will repeat."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, run_bounded
from adapters.raw_client import fetch
from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.events import TurnFinished
from services.dataplane.door import JSON, Door, open_door

Body = dict[str, Any]
TEXT = "Assur was the first capital; Nineveh and Nimrud followed it in later centuries."


@dataclass(frozen=True)
class Way:
    """A dialect: where it is spoken, how a conversation is asked for in it, and what an answer says."""

    name: str
    path: str
    asked: Callable[[list[tuple[str, str]], bool], Body]
    ids: Callable[[list[Body]], list[str]]


def _chat(talk: list[tuple[str, str]], stream: bool) -> Body:
    return {"model": "m", "stream": stream, "messages": [{"role": role, "content": text} for role, text in talk]}


def _messages(talk: list[tuple[str, str]], stream: bool) -> Body:
    return {**_chat(talk, stream), "max_tokens": 9}


def _responses(talk: list[tuple[str, str]], stream: bool) -> Body:
    items = []
    for role, text in talk:
        kind = "output_text" if role == "assistant" else "input_text"
        halves = (text[:9], text[9:]) if role == "assistant" else (text,)  # an answer may be several items
        items += [{"type": "message", "role": role, "content": [{"type": kind, "text": half}]} for half in halves]
    return {"model": "m", "stream": stream, "input": items}


def _gemini(talk: list[tuple[str, str]], stream: bool) -> Body:
    del stream
    return {
        "contents": [
            {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]} for role, text in talk
        ]
    }


def _found(member: str, key: str) -> Callable[[list[Body]], list[str]]:
    """Return what finds the ids in the documents of an answer: each member of that name that has such a key."""

    def found(value: object, under: str = "") -> list[str]:
        if isinstance(value, list):
            return [each for inner in value for each in found(inner, under)]
        if not isinstance(value, dict):
            return []
        own = [value[key]] if under in member.split() and isinstance(value.get(key), str) else []
        return own + [each for name, inner in value.items() for each in found(inner, name)]

    return lambda documents: list(dict.fromkeys(found(documents)))


WAYS = [
    Way("chat", "/v1/chat/completions", _chat, _found("tool_calls", "id")),
    Way(
        "messages",
        "/v1/messages",
        lambda talk, stream: {**_chat(talk, stream), "max_tokens": 9},
        _found("content content_block", "id"),
    ),
    Way("responses", "/v1/responses", _responses, _found("item output", "call_id")),
    Way("gemini", "/v1beta/models/m:{verb}", _gemini, _found("functionCall", "id")),
]
EVERY_WAY = pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def documents_of(body: bytes) -> list[Body]:
    if body.startswith(b"{"):
        return [json.loads(body)]
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


async def ask(door: Door, way: Way, talk: list[tuple[str, str]], *, stream: bool) -> list[Body]:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = way.path.replace("{verb}", verb).encode()
    reply = await fetch(door.url, b"POST", path, JSON, body=json.dumps(way.asked(talk, stream)).encode())
    assert reply.status == 200, reply.body
    return documents_of(reply.body)


def chat_answer(message: Body, finish: str, *, stream: bool) -> bytes:
    """Return a Chat Completions answer as it comes over the wire."""
    if not stream:
        body = {"id": "c", "model": "e", "choices": [{"message": message, "finish_reason": finish}]}
        return answer(json.dumps(body).encode(), headers=b"content-type: application/json\r\n")
    calls = [{"index": at, **call} for at, call in enumerate(message.get("tool_calls", ()))]
    delta = {**message, **({"tool_calls": calls} if calls else {})}
    choices = [{"delta": delta}], [{"delta": {}, "finish_reason": finish}]
    events = [b"data: %b\n\n" % json.dumps({"id": "c", "model": "e", "choices": each}).encode() for each in choices]
    return chunked(*events, b"data: [DONE]\n\n")


def engine_of(message: Body, finish: str, lines: list[bytes]) -> ScriptedEngine:
    async def script(visit: Visit) -> None:
        while True:
            request = await visit.request()
            lines.append(request.line)
            visit.send(chat_answer(message, finish, stream=json.loads(request.body).get("stream") is True))

    return ScriptedEngine(script)


def function(name: str, call_id: str | None) -> Body:
    call: Body = {"type": "function", "function": {"name": name, "arguments": "{}"}}
    return call if call_id is None else {"id": call_id, **call}


@EVERY_WAY
@STREAMED
@pytest.mark.parametrize("engine", [EngineKind.VLLM, EngineKind.LLAMA_CPP])
@pytest.mark.parametrize(
    "given", [("a", "b"), (None, None), ("a", "a"), ("", "b")], ids=["given", "missing", "twice", "empty"]
)
def test_the_ids_that_a_client_gets_are_the_ones_that_are_learned(
    way: Way, stream: bool, engine: EngineKind, given: tuple[str | None, str | None]
) -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [function(*call) for call in zip("fg", given, strict=True)],
    }

    async def main() -> None:
        async with open_door(engine_of(message, "tool_calls", [])) as door:
            door.scheduler.engine_kind = engine
            told = [way.ids(await ask(door, way, [("user", "hi")], stream=stream)) for _ in range(2)]
            endings = [ending for ending in door.scheduler.endings if isinstance(ending, TurnFinished)]
            learned = [list(ending.tool_calls) for ending in endings]
            assert learned == [[each for each in ids if each] for ids in told]
            if way.name != "chat":  # there the engine's bytes are the client's
                assert all(len(set(ids)) == 2 for ids in told)
                made_up = [set(ids) - set(given) for ids in told]
                assert not made_up[0] & made_up[1], "two turns were given the same ids"

    run_bounded(main())


NATIVE: dict[str, dict[bool, list[Body]]] = {
    "messages": {
        True: [
            {"type": "message_start", "message": {"id": "msg", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT[:9]}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT[9:]}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
        False: [{"type": "message", "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn"}],
    },
    "responses": {
        True: [
            {"type": "response.created", "response": {"status": "in_progress"}},
            {"type": "response.output_text.delta", "delta": TEXT[:9]},
            {"type": "response.output_text.delta", "delta": TEXT[9:]},
            {"type": "response.completed", "response": {"status": "completed", "output": []}},
        ],
        False: [
            {
                "object": "response",
                "status": "completed",
                "output": [{"type": "message", "content": [{"type": "output_text", "text": TEXT}]}],
            }
        ],
    },
}


def native_engine(way: Way, paths: list[bytes]) -> ScriptedEngine:
    async def script(visit: Visit) -> None:
        while True:
            request = await visit.request()
            paths.append(request.line.split()[1])
            documents = NATIVE[way.name][json.loads(request.body)["stream"]]
            if len(documents) == 1:
                visit.send(answer(json.dumps(documents[0]).encode(), headers=b"content-type: application/json\r\n"))
                continue
            events = [
                b"event: %b\ndata: %b\n\n" % (str(each["type"]).encode(), json.dumps(each).encode())
                for each in documents
            ]
            visit.send(chunked(*events))

    return ScriptedEngine(script)


async def goes_on(door: Door, way: Way, *, stream: bool) -> None:
    """Ask twice, and see that the second request is known by a mark of the first one's answer."""
    talk = [("user", "What is the capital of Assyria?")]
    await ask(door, way, talk, stream=stream)
    talk += [("assistant", TEXT), ("user", "And then?")]
    await ask(door, way, talk, stream=stream)
    await ask(door, way, [("user", "Something else.")], stream=stream)
    first = door.scheduler.endings[0]
    assert isinstance(first, TurnFinished)
    assert len(first.marks) == 2
    _, second, other = door.scheduler.offers
    assert set(first.marks) <= set(second.keys.said)
    assert not set(first.marks) & set(other.keys.said)


@pytest.mark.parametrize("way", WAYS[1:3], ids=["messages", "responses"])
@STREAMED
def test_a_plain_chat_is_known_again_where_its_engine_speaks_the_dialect(way: Way, stream: bool) -> None:
    async def main() -> None:
        paths: list[bytes] = []
        async with open_door(native_engine(way, paths)) as door:
            door.scheduler.dialects = (way.name,)
            await goes_on(door, way, stream=stream)
            assert paths == [way.path.encode()] * 3

    run_bounded(main())


@EVERY_WAY
@STREAMED
@pytest.mark.parametrize("engine", [EngineKind.VLLM, EngineKind.LLAMA_CPP])
def test_a_plain_chat_is_known_again_where_its_engine_speaks_chat_completions(
    way: Way, stream: bool, engine: EngineKind
) -> None:
    async def main() -> None:
        lines: list[bytes] = []
        async with open_door(engine_of({"role": "assistant", "content": TEXT}, "stop", lines)) as door:
            door.scheduler.engine_kind = engine
            await goes_on(door, way, stream=stream)
            assert {line.split()[1] for line in lines} == {b"/v1/chat/completions"}

    run_bounded(main())


def test_an_odd_member_of_a_chat_hides_no_mark() -> None:
    async def main() -> None:
        way = WAYS[0]
        async with open_door(engine_of({"role": "assistant", "content": TEXT}, "stop", [])) as door:
            odd = Way("chat", way.path, lambda talk, stream: {**_chat(talk, stream), "input": 7, "system": {}}, way.ids)
            await goes_on(door, odd, stream=True)

    run_bounded(main())


def test_a_call_without_an_id_leaves_the_mark_of_a_conversation_that_ended_in_calls() -> None:
    async def main() -> None:
        message = {"role": "assistant", "content": None, "tool_calls": [function("f", None)]}
        async with open_door(engine_of(message, "tool_calls", [])) as door:
            await ask(door, WAYS[0], [("user", "hi")], stream=True)
            await ask(door, WAYS[0], [("user", "hi"), ("assistant", "called f"), ("user", "it said 7")], stream=True)
            first = door.scheduler.endings[0]
            assert isinstance(first, TurnFinished)
            assert [mark[:2] for mark in first.marks] == ["c:"]
            assert set(first.marks) <= set(door.scheduler.offers[1].keys.said)

    run_bounded(main())


def test_what_stands_alone_is_not_listened_to() -> None:
    async def main() -> None:
        async with open_door(engine_of({"role": "assistant", "content": TEXT}, "stop", [])) as door:
            body = b'{"model":"m","prompt":"x","messages":[{"role":"user","content":"hi"}]}'
            await fetch(door.url, b"POST", b"/v1/completions", JSON, body=body)
            ending = door.scheduler.endings[0]
            assert isinstance(ending, TurnFinished)
            assert (door.scheduler.offers[0].keys.said, ending.marks) == ((), ())

    run_bounded(main())
