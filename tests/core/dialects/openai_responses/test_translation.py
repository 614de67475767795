"""Real exchanges: what Codex and the openai package asked, what a llama.cpp or a scripted engine answered.

`NAME.request.json` is what the client sent, `NAME.chat.json` what the engine was asked, `NAME.answer.*` what it
answered and `NAME.response.*` what the client was told. Long texts of requests were cut, ids and paths replaced.
"""

import json
import random
from typing import Final, cast

import pytest
from openai.types.responses import Response

from core.dialects.openai_responses.exchanges import (
    GOLDEN,
    PATH,
    RESPONSES,
    Object,
    chunk,
    cut,
    events_of,
    output_of,
    response_of,
    sdk,
    tool_call,
    translated,
    written,
)
from core.dialects.openai_responses.legality import check_stream
from luftpause.core.dialects.chat_answer import ANSWER_BYTES_MAX
from luftpause.core.dialects.dialect import UnfitAnswerError

NAMES: Final = sorted(path.name.removesuffix(".request.json") for path in GOLDEN.glob("*.request.json"))
STREAMS = [name for name in NAMES if (GOLDEN / f"{name}.answer.sse").exists()]
WHOLE = [name for name in NAMES if (GOLDEN / f"{name}.answer.json").exists()]
EVERY_BYTE = 2500
"""Streams up to this length are cut at every byte, longer ones at as many seeded places."""

SEED = 18


def request(name: str) -> bytes:
    return (GOLDEN / f"{name}.request.json").read_bytes()


def test_there_are_exchanges_of_every_kind() -> None:
    assert len(STREAMS) >= 12
    assert len(WHOLE) >= 2
    assert sorted(NAMES) == sorted(STREAMS + WHOLE)


@pytest.mark.parametrize("name", NAMES)
def test_the_request_is_said_in_chat(name: str) -> None:
    chat = json.loads(RESPONSES.translate(PATH, request(name)).request)
    assert chat == json.loads((GOLDEN / f"{name}.chat.json").read_bytes())
    assert RESPONSES.peek(PATH, request(name), with_identity=True).stream == chat.get("stream", False)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_told_whatever_pieces_it_comes_in(name: str) -> None:
    answer = (GOLDEN / f"{name}.answer.sse").read_bytes()
    expected = (GOLDEN / f"{name}.response.sse").read_bytes()
    chance = random.Random(SEED)
    places = range(len(answer) + 1) if len(answer) <= EVERY_BYTE else chance.sample(range(len(answer)), 300)

    check_stream(events_of(expected))
    assert translated(request(name), [answer]) == expected
    assert translated(request(name), [bytes([byte]) for byte in answer]) == expected
    for place in places:
        assert translated(request(name), cut(answer, [place])) == expected, f"seed {SEED}, cut at {place}"


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_answer_is_told_as_one(name: str) -> None:
    answer = (GOLDEN / f"{name}.answer.json").read_bytes()
    expected = json.loads((GOLDEN / f"{name}.response.json").read_bytes())
    for place in range(len(answer) + 1):
        assert json.loads(translated(request(name), cut(answer, [place]))) == expected
    Response.model_validate(expected)
    parsed = sdk(json.dumps(expected).encode(), "application/json").responses.create(model="m", input="hi")
    assert [item.to_dict() for item in parsed.output] == expected["output"]


@pytest.mark.parametrize("name", [name for name in STREAMS if "failed" not in name and "too_long" not in name])
def test_the_clients_package_puts_a_stream_together(name: str) -> None:
    told = (GOLDEN / f"{name}.response.sse").read_bytes()
    expected = output_of(events_of(told))
    done: list[Object] = []
    with sdk(told).responses.stream(model="m", input="hi") as stream:
        done = [event.item.to_dict() for event in stream if event.type == "response.output_item.done"]
    assert done == expected


def test_what_codex_is_told_of_a_call_in_a_namespace() -> None:
    items = output_of(events_of((GOLDEN / "codex_first.response.sse").read_bytes()))
    assert [(item["name"], item.get("namespace")) for item in items] == [
        ("exec_command", None),
        ("echo_text", "mcp__lp"),
    ]


def test_the_observer_sees_in_a_translated_stream_what_its_engine_said() -> None:
    observer = RESPONSES.observer(stream=True)
    observer.feed((GOLDEN / "codex_llama_first.response.sse").read_bytes())
    seen = observer.observed()
    [item] = output_of(events_of((GOLDEN / "codex_llama_first.response.sse").read_bytes()))
    assert seen.usage is not None
    assert seen.usage.prompt_tokens > 1000
    assert (observer.done, seen.finish, list(seen.tool_calls)) == (True, "completed", [item["call_id"]])


def test_the_time_is_taken_from_the_first_document() -> None:
    events = (b": hello\n\n", b"data: \n\n", chunk({"content": "x"}), chunk(finish="stop", created=7))
    told = events_of(translated(written(stream=True), [b"".join(events)]))
    assert cast("Object", told[0]["response"])["created_at"] == 1700000000
    assert response_of(told)["created_at"] == 1700000000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "broke off"),
        (b"<html>", "no Chat Completions answer"),
        (b'{"error": {"message": "no room", "code": 503}}', "no room"),
        (b'{"choices": [{"message": {"content": "x"}, "finish_reason": "abort"}]}', "gave up: abort"),
        (b'{"x": "%b"}' % (b"x" * ANSWER_BYTES_MAX), "too long"),
    ],
)
def test_a_whole_answer_that_is_none_does_not_become_one(body: bytes, message: str) -> None:
    with pytest.raises(UnfitAnswerError, match=message):
        translated(written(), [body])


def test_a_whole_answer_and_a_stream_say_the_same() -> None:
    tools = [
        {"type": "custom", "name": "patch"},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]},
    ]
    calls = [("call_a", "patch", '{"input": "x"}'), ("call_b", "n__f", "{}")]
    whole: Object = {
        "role": "assistant",
        "content": "Hi",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ],
    }  # fmt: skip
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}
    body = {"id": "chatcmpl-A1", "created": 1700000000, "choices": [{"message": whole, "finish_reason": "tool_calls"}]}
    one = json.loads(translated(written(tools=tools), [json.dumps({**body, "usage": usage}).encode()]))
    events = [chunk({"reasoning_content": "hm"}), chunk({"content": "Hi"})]
    events += [tool_call(index, call_id=each[0], name=each[1], arguments=each[2]) for index, each in enumerate(calls)]
    events += [chunk(finish="tool_calls"), chunk(usage=usage), b"data: [DONE]\n\n"]
    streamed = response_of(events_of(translated(written(tools=tools, stream=True), events)))

    assert one == streamed
    assert [item["type"] for item in cast("list[Object]", one["output"])] == [
        "reasoning",
        "message",
        "custom_tool_call",
        "function_call",
    ]
    assert one["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10,
    }
