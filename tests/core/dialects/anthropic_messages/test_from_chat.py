import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.dialects.anthropic_messages.legal import Told, told_by
from luftpause.core.dialects.anthropic_messages.from_chat import PIECES_PER_PING, StreamBack, WholeBack
from luftpause.core.dialects.call_ids import CallIds
from luftpause.core.dialects.chat_answer import ANSWER_BYTES_MAX
from luftpause.core.dialects.dialect import UnfitAnswerError

USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 7}}


def chunk(finish: str | None = None, stop: object = None, **delta: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "matched_stop": stop}
    return json.dumps({"id": "chatcmpl-1", "model": "m", "choices": [choice]}).encode()


def usage(**members: object) -> bytes:
    return json.dumps({"id": "chatcmpl-1", "choices": [], "usage": {**USAGE, **members}}).encode()


def call(index: int, call_id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, object]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


def stream(*documents: bytes) -> bytes:
    return b"".join(b"data: " + document + b"\n\n" for document in documents)


def back(*pieces: bytes, thinking: bool = True, stops: tuple[str, ...] = ()) -> bytes:
    way = StreamBack(CallIds("toolu_", "t.1"), thinking=thinking, stops=stops)
    return b"".join(map(way.feed, pieces)) + way.end()


def told(*documents: bytes, thinking: bool = True, stops: tuple[str, ...] = ()) -> Told:
    return told_by(back(stream(*documents), thinking=thinking, stops=stops))


def whole(*, thinking: bool = True, stops: tuple[str, ...] = (), **message: object) -> dict[str, Any]:
    choice = {"message": message, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}
    body = json.dumps({"id": "chatcmpl-1", "model": "m", "choices": [choice], "usage": USAGE}).encode()
    way = WholeBack(CallIds("toolu_", "t.1"), thinking=thinking, stops=stops)
    assert way.feed(body[:9]) + way.feed(body[9:]) == b""
    answer: dict[str, Any] = json.loads(way.end())
    return answer


def test_a_stream_of_everything() -> None:
    seen = told(
        chunk(role="assistant", content=""),
        chunk(reasoning_content="hm"),
        chunk(content="I "),
        chunk(content="look"),
        chunk(tool_calls=[call(0, "a", "look", "")]),
        chunk(tool_calls=[call(0, arguments='{"x":')]),
        chunk(tool_calls=[call(0, arguments="1}")]),
        chunk(tool_calls=[call(1, "b", "see", "{}")]),
        chunk("tool_calls"),
        usage(),
        b"[DONE]",
    )

    assert seen.blocks == [
        ("thinking", "hm", "", ""),
        ("text", "I look", "", ""),
        ("tool_use", '{"x":1}', "a", "look"),
        ("tool_use", "{}", "b", "see"),
    ]
    assert (seen.stop_reason, seen.stop_sequence, seen.error) == ("tool_use", None, "")
    assert seen.usage == {
        "input_tokens": 2,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 7,
        "output_tokens": 4,
    }


def test_each_piece_goes_out_when_it_comes() -> None:
    way = StreamBack(CallIds("toolu_", "t.1"), thinking=False, stops=())
    assert b"message_start" in way.feed(stream(chunk(role="assistant", content="")))
    assert b'"text":"a"' in way.feed(stream(chunk(content="a")))
    assert way.feed(stream(chunk("stop"))) == b""
    assert way.feed(stream(usage())) == b""
    assert b"message_stop" in way.feed(stream(b"[DONE]"))
    assert way.end() == b""


@pytest.mark.parametrize(
    ("finish", "calls", "reason"),
    [
        ("stop", False, "end_turn"),
        ("stop", True, "tool_use"),
        ("tool_calls", True, "tool_use"),
        ("tool_calls", False, "end_turn"),
        ("length", False, "max_tokens"),
        ("length", True, "max_tokens"),
        ("content_filter", False, "refusal"),
        ("something new", False, "end_turn"),
    ],
)
def test_reasons(finish: str, calls: bool, reason: str) -> None:
    deltas = [chunk(tool_calls=[call(0, "a", "look", "{}")])] if calls else [chunk(content="a")]

    assert told(*deltas, chunk(finish), b"[DONE]").stop_reason == reason


def test_a_stop_sequence_is_named_where_it_is_one_of_the_requests() -> None:
    for stop, expected in (("END", ("stop_sequence", "END")), ("</s>", ("end_turn", None)), (7, ("end_turn", None))):
        seen = told(chunk(content="a"), chunk("stop", stop), b"[DONE]", stops=("x", "END"))
        assert (seen.stop_reason, seen.stop_sequence) == expected


def test_thinking_that_was_not_asked_for_is_left_out_and_shows_life() -> None:
    thoughts = [chunk(reasoning="hm")] * (2 * PIECES_PER_PING + 1)

    seen = told(*thoughts, chunk(content="a"), chunk("stop"), thinking=False)

    assert seen.blocks == [("text", "a", "", "")]
    assert seen.pings == 2


@pytest.mark.parametrize(
    "documents",
    [
        [chunk(content="a"), chunk("stop")],
        [chunk(content="a"), b"[DONE]"],
        [chunk(content="a"), b"", chunk("stop"), b'{"choices":[]}'],
    ],
)
def test_usage_finish_and_done_may_be_missing(documents: list[bytes]) -> None:
    seen = told(*documents)

    assert (seen.blocks, seen.stop_reason, seen.error) == ([("text", "a", "", "")], "end_turn", "")
    assert seen.usage["output_tokens"] == 0


def test_more_cached_tokens_than_there_are_make_no_negative_count() -> None:
    assert told(chunk("stop"), usage(prompt_tokens=3)).usage["input_tokens"] == 0


def test_an_id_that_the_engine_does_not_give_is_made_up_and_differs() -> None:
    seen = told(chunk(tool_calls=[call(0, None, "look", "{}"), call(1, None, "see", "{}")]), chunk("tool_calls"))

    ids = [block[2] for block in seen.blocks]
    assert len(set(ids)) == 2
    assert all(each.startswith("toolu_") for each in ids)


def test_an_id_that_the_engine_gives_twice_is_made_up_the_second_time() -> None:
    seen = told(chunk(tool_calls=[call(0, "a", "look", "{}"), call(1, "a", "see", "{}")]), chunk("tool_calls"))
    first, second = [block[2] for block in seen.blocks]
    assert (first, second != "a", second.startswith("toolu_")) == ("a", True, True)


@pytest.mark.parametrize(
    ("documents", "error"),
    [
        ([], "the engine sent no answer"),
        ([b"[DONE]"], "the engine sent no answer"),
        ([chunk(content="a")], "the engine's answer broke off"),
        ([chunk(tool_calls=[call(0, "a", "look", "{")])], "the engine's answer broke off"),
        ([chunk(content="a"), b'{"error": {"message": "out of memory"}}', chunk("stop"), b"[DONE]"], "out of memory"),
        ([chunk(content="a"), chunk("abort"), b"[DONE]"], "the engine gave the turn up"),
        ([chunk(content="a"), b"no json", b"[DONE]"], "the engine sent what is no Chat Completions answer"),
    ],
)
def test_a_failure_is_an_error_event_and_the_end(documents: list[bytes], error: str) -> None:
    assert told(*documents).error == error


def test_the_status_of_a_failure_tells_its_type() -> None:
    answer = back(stream(chunk(content="a"), b'{"error": {"message": "busy", "code": 429}}'))

    assert answer.endswith(
        b'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"busy"}}\n\n'
    )


def test_a_whole_answer() -> None:
    calls = [call(0, "a", "look", '{"x": 1.0}'), call(1, "b", "see", ""), call(2, "c", "see", "[1]")]

    answer = whole(content="I look", reasoning_content="hm", tool_calls=calls)

    assert answer == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "text", "text": "I look"},
            {"type": "tool_use", "id": "a", "name": "look", "input": {"x": 1.0}},
            {"type": "tool_use", "id": "b", "name": "see", "input": {}},
            {"type": "tool_use", "id": "c", "name": "see", "input": {"unreadable_arguments": "[1]"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 7,
            "output_tokens": 4,
        },
    }
    assert whole(content="a", reasoning="hm", thinking=False)["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b'{"error": {"message": "no"}}', b" " * (ANSWER_BYTES_MAX + 1)]
)
def test_a_body_that_is_no_answer_does_not_become_one(body: bytes) -> None:
    way = WholeBack(CallIds("toolu_", "t.1"), thinking=False, stops=())
    way.feed(body)

    with pytest.raises(UnfitAnswerError):
        way.end()


TEXTS = st.sampled_from(["", "a", "\n\n", '"', "é"])
FRAGMENTS = st.builds(
    call,
    st.integers(0, 2),
    st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, "", "look"]),
    st.sampled_from(["", "{", "}", "{}", '{"a":"}', '"}', " "]),
)
DOCUMENTS = st.one_of(
    st.builds(lambda text: chunk(content=text), TEXTS),
    st.builds(lambda text: chunk(reasoning_content=text, content="x"), TEXTS),
    st.builds(lambda calls: chunk(tool_calls=calls), st.lists(FRAGMENTS, max_size=3)),
    st.builds(chunk, st.sampled_from(["stop", "length", "tool_calls", "abort"])),
    st.sampled_from([usage(), b"[DONE]", b'{"choices":[]}', b'{"error":{"message":"no"}}', b"null", b"", b"no json"]),
)


@settings(max_examples=300)
@given(st.lists(DOCUMENTS, max_size=14), st.lists(st.integers(0, 100_000), max_size=6), st.booleans())
def test_whatever_comes_the_stream_is_legal_and_ends_once(
    documents: list[bytes], cuts: list[int], thinking: bool
) -> None:
    sent = stream(*documents)
    answer = back(sent, thinking=thinking)
    told_by(answer)

    points = [0, *sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)]
    assert back(*(sent[begin:end] for begin, end in itertools.pairwise(points)), thinking=thinking) == answer


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=30), st.lists(TEXTS, max_size=4))
def test_mixed_calls_come_out_whole(order: list[tuple[int, int]], texts: list[str]) -> None:
    arguments = ['{"a": "}{", "b": [1, {}]}', "{}", '{"city": "Bern"}']
    left = list(arguments)
    documents = [chunk(tool_calls=[call(index, f"id{index}", f"tool{index}")]) for index in range(3)]
    documents += [chunk(content=text) for text in texts]
    for index, size in [*order, (0, 99), (1, 99), (2, 99)]:
        documents.append(chunk(tool_calls=[call(index, arguments=left[index][:size])]))
        left[index] = left[index][size:]

    seen = told(*documents, chunk("tool_calls"))

    assert [block for block in seen.blocks if block[0] == "tool_use"] == [
        ("tool_use", arguments[index], f"id{index}", f"tool{index}") for index in range(3)
    ]
    assert "".join(block[1] for block in seen.blocks if block[0] == "text") == "".join(texts)
