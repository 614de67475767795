import itertools
import json
import random
from typing import NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.dialects.openai_responses.exchanges import (
    Object,
    answered,
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
from luftpause.core.dialects.call_ids import CallIds
from luftpause.core.dialects.chat_answer import ANSWER_BYTES_MAX
from luftpause.core.dialects.openai_responses.answer import Answer
from luftpause.core.dialects.openai_responses.chat_request import say_in_chat

DONE = b"data: [DONE]\n\n"
TOOLS = [
    {"type": "function", "name": "look"},
    {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "see"}]},
    {"type": "custom", "name": "patch"},
    {"type": "tool_search", "execution": "client"},
]
REQUEST = written(stream=True, tools=TOOLS)


def kinds(events: list[Object]) -> list[str]:
    return [str(event["type"]).removeprefix("response.") for event in events]


def test_the_events_of_a_text() -> None:
    events = answered(chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo"}),
                      chunk({}, "stop"), DONE)  # fmt: skip
    check_stream(events)
    assert kinds(events) == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert response_of(events)["id"] == "resp_A1"
    assert output_of(events) == [
        {
            "id": "msg_A1_0",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}],
        }
    ]


def test_thoughts_are_an_item_of_their_own() -> None:
    events = answered(chunk({"reasoning_content": "hm"}), chunk({"content": "Hi"}), chunk({}, "stop"), DONE)
    check_stream(events)
    thought, spoken = output_of(events)
    assert (thought["type"], thought["summary"], thought["content"]) == (
        "reasoning",
        [],
        [{"type": "reasoning_text", "text": "hm"}],
    )
    assert spoken["type"] == "message"


def test_parallel_calls_that_come_interleaved_follow_one_another() -> None:
    events = answered(
        tool_call(0, call_id="call_0", name="look", arguments='{"a"'),
        tool_call(1, call_id="call_1", name="look", arguments='{"b"'),
        tool_call(0, arguments=": 0}"),
        chunk({"content": "meanwhile"}),
        tool_call(1, arguments=": 1}"),
        chunk({}, "tool_calls"),
        DONE,
    )
    check_stream(events)
    assert [(item["type"], item.get("arguments")) for item in output_of(events)] == [
        ("function_call", '{"a": 0}'),
        ("message", None),
        ("function_call", '{"b": 1}'),
    ]


def test_a_call_is_closed_as_soon_as_the_next_begins() -> None:
    events = answered(
        tool_call(0, call_id="call_0", name="look", arguments="{}"),
        tool_call(1, call_id="call_1", name="look", arguments="{}"),
    )
    assert kinds(events)[-3:] == ["output_item.added", "function_call_arguments.delta", "failed"]
    assert "output_item.done" in kinds(events)


def test_calls_without_an_id_or_with_the_same_get_one() -> None:
    events = answered(
        tool_call(0, call_id="call_0", name="look", arguments="{}"),
        tool_call(1, name="look"),
        tool_call(2, call_id="call_0", name="see", arguments="{}"),
        chunk({}, "tool_calls"),
        DONE,
    )
    check_stream(events)
    ids = [item["call_id"] for item in output_of(events)]
    assert ids[0] == "call_0"
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("whatever", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
@pytest.mark.parametrize("last", [DONE, b"", b": nothing more\n\n"])
def test_how_an_answer_ends(finish: str, status: str, reason: str | None, last: bytes) -> None:
    events = answered(chunk({"content": "Hi"}), chunk({}, finish), chunk(), last)
    check_stream(events)
    assert events[-1]["type"] == f"response.{status}"
    assert response_of(events)["status"] == status
    assert response_of(events)["incomplete_details"] == ({"reason": reason} if reason else None)
    assert [item["status"] for item in output_of(events)] == [status]
    assert response_of(events)["usage"] is None


def test_an_answer_that_is_called_done_is_whole() -> None:
    assert answered(chunk({"content": "Hi"}), DONE)[-1]["type"] == "response.completed"


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((), "broke off"),
        ((DONE,), "holds nothing"),
        ((chunk({"content": "Hi"}),), "broke off"),
        ((chunk({"content": "Hi"}), b"data: {oops\n\n", chunk({}, "stop")), "no Chat Completions answer"),
        ((chunk({"content": "Hi"}), chunk({}, "abort"), DONE), "gave up: abort"),
        ((chunk({"content": "Hi"}), b'data: {"error": {"message": "died"}}\n\n', DONE), "died"),
    ],
)
def test_an_answer_that_is_not_whole_fails_with_what_came(events: tuple[bytes, ...], message: str) -> None:
    told = answered(*events)
    check_stream(told)
    response = response_of(told)
    assert told[-1]["type"] == "response.failed"
    assert message in str(cast("Object", response["error"])["message"])
    assert [item["status"] for item in output_of(told)] == ["incomplete"] * (chunk({"content": "Hi"}) in events)


def test_nothing_follows_an_end() -> None:
    assert answered(chunk({"content": "a"}), DONE, chunk({"content": "b"}), DONE) == answered(
        chunk({"content": "a"}), DONE
    )


def test_an_engine_without_ids() -> None:
    first, second = (answered(chunk({"content": "a"}, "stop", id=None), request=REQUEST) for _ in range(2))
    other = answered(chunk({"content": "a"}, "stop", id=None), request=written(stream=True))
    assert first == second
    assert response_of(first)["id"] != response_of(other)["id"]


def test_an_endless_answer_ends() -> None:
    answer = Answer(say_in_chat(REQUEST), CallIds("call_", "t.1"))
    pieces = [chunk({"content": "x" * 200_000}) for _ in range(ANSWER_BYTES_MAX // 200_000 + 2)]
    told = answered(*pieces)
    assert not answer.over
    assert told[-1]["type"] == "response.failed"
    assert "too long" in str(cast("Object", response_of(told)["error"])["message"])
    check_stream(told)


class Said(NamedTuple):
    """An engine's stream and what it says."""

    stream: bytes
    text: str
    thought: str
    calls: list[tuple[str, str]]
    ends_well: bool


NAMES = ("look", "n__see", "patch", "tool_search", "unknown")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@st.composite
def streams(draw: st.DrawFn) -> Said:
    """Draw what a model says, in fragments that come interleaved, with what engines put in between."""
    calls = [
        (draw(st.sampled_from(NAMES)), json.dumps({"input": draw(TEXTS)}, ensure_ascii=draw(st.booleans())))
        for _ in range(draw(st.integers(0, 3)))
    ]
    fragments: list[list[bytes]] = []
    for index, (name, arguments) in enumerate(calls):
        places = draw(st.lists(st.integers(0, len(arguments)), max_size=3))
        ends = sorted({0, *places, len(arguments)})
        pieces = [arguments[start:end] for start, end in itertools.pairwise(ends)]
        begun = tool_call(index, call_id=f"call_{index}", name=name)
        fragments.append([begun, *[tool_call(index, arguments=piece) for piece in pieces]])
    texts, thoughts = draw(st.lists(TEXTS, max_size=3)), draw(st.lists(TEXTS, max_size=2))
    fragments.append([chunk({"content": text}) for text in texts])
    fragments.append([chunk({"reasoning_content": thought}) for thought in thoughts])
    fragments.append(draw(st.lists(st.sampled_from([b": x\n\n", chunk(), chunk({"content": ""})]), max_size=2)))
    events: list[bytes] = [chunk({"role": "assistant"})]
    order = [number for number, each in enumerate(fragments) for _ in each]
    mixed = draw(st.permutations(order)) if draw(st.booleans()) else order
    events += [fragments[number].pop(0) for number in mixed]
    ends_well = draw(st.booleans()) or draw(st.booleans())
    last = [chunk({}, draw(st.sampled_from(["stop", "tool_calls", "length"])))] if ends_well else []
    last += draw(st.sampled_from([[DONE], [], [chunk(usage={"prompt_tokens": 3}), DONE]])) if ends_well else []
    if not ends_well and draw(st.booleans()):
        last = [b'data: {"error": {"message": "died"}}\n\n']
    return Said(b"".join(events + last), "".join(texts), "".join(thoughts), calls, ends_well)


@given(streams(), st.randoms())
def test_every_stream_is_legal_and_nothing_is_lost(said: Said, chance: random.Random) -> None:
    told = translated(REQUEST, [said.stream])
    places = [chance.randrange(len(said.stream) + 1) for _ in range(5)]
    assert translated(REQUEST, cut(said.stream, places)) == told

    events = events_of(told)
    check_stream(events)
    assert (events[-1]["type"] != "response.failed") == said.ends_well
    if not said.ends_well:
        return
    text, thought, calls = "", "", []
    for item in output_of(events):
        for part in cast("list[Object]", item.get("content") or []):
            text += str(part["text"]) if item["type"] == "message" else ""
            thought += str(part["text"]) if item["type"] == "reasoning" else ""
        if "call_id" in item:
            calls.append(meant(item))
    assert (text, thought) == (said.text, said.thought)
    assert sorted(calls) == sorted((name, json.loads(arguments)["input"]) for name, arguments in said.calls)


def meant(item: Object) -> tuple[str, str]:
    """Return the name of the function and the input that an item is about."""
    if item["type"] == "custom_tool_call":
        return str(item["name"]), str(item["input"])
    if item["type"] == "tool_search_call":
        return "tool_search", str(cast("Object", item["arguments"])["input"])
    name = f"{item['namespace']}__{item['name']}" if "namespace" in item else str(item["name"])
    return name, str(json.loads(str(item["arguments"]))["input"])


@given(streams())
@settings(deadline=None)  # the package takes its time at first
def test_the_clients_package_puts_every_stream_together(said: Said) -> None:
    told = translated(REQUEST, [said.stream])
    client = sdk(told)
    if not said.ends_well:
        with (
            client.responses.stream(model="m", input="hi") as stream,
            pytest.raises(Exception, match=r"died|broke off"),
        ):
            stream.until_done()
        return
    text, calls = "", []
    with client.responses.stream(model="m", input="hi") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
            elif event.type == "response.output_item.done" and event.item.type in (
                "function_call",
                "custom_tool_call",
                "tool_search_call",
            ):
                calls.append(meant(event.item.to_dict()))
    assert text == said.text
    assert sorted(calls) == sorted((name, json.loads(arguments)["input"]) for name, arguments in said.calls)
