import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.chat_answer import (
    ANSWER_BYTES_MAX,
    CALLS_MAX,
    Begun,
    CallArguments,
    CallBegun,
    ChatStreamReader,
    Done,
    Failed,
    Finished,
    Piece,
    Reasoning,
    Text,
    read_chat_answer,
)
from luftpause.core.dialects.chat_documents import Used
from luftpause.core.model.turns import Usage

GOLDEN = Path(__file__).parent / "anthropic_messages/golden"
BEGUN = Begun("c", "m")


def chunk(*, finish: str | None = None, usage: object = None, stop: object = None, **delta: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "stop_reason": stop}
    return json.dumps({"id": "c", "model": "m", "choices": [choice], "usage": usage}).encode()


def call(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: object = None
) -> object:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    whole = {"index": index, "id": call_id, "function": function or None}
    return {key: value for key, value in whole.items() if value is not None}


def stream(*documents: bytes) -> bytes:
    return b"".join(b"data: " + document + b"\n\n" for document in documents)


def read(*pieces: bytes) -> list[Piece]:
    reader = ChatStreamReader()
    return [each for piece in pieces for each in reader.feed(piece)] + reader.end()


def calls(*deltas: object) -> list[Piece]:
    return read(stream(*(chunk(tool_calls=[delta]) for delta in deltas)))[1:]


def test_an_ordinary_stream() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    whole = stream(
        chunk(role="assistant", content=""),
        chunk(reasoning_content="hm"),
        chunk(content="a"),
        chunk(content="b"),
        chunk(finish="stop"),
        json.dumps({"id": "c", "choices": [], "usage": usage}).encode(),
        b"[DONE]",
    )

    used = Used(Usage(prompt_tokens=5, completion_tokens=2, cached_tokens=4))
    assert read(whole) == [BEGUN, Reasoning("hm"), Text("a"), Text("b"), Finished("stop", ""), used, Done()]


def test_what_no_answer_needs_may_be_missing() -> None:
    assert read(b": comment\n\n", stream(b"", b'{"choices":[]}', b"{}")) == [Begun("", "")]
    assert read(stream(chunk(content="a"))[:-2]) == [BEGUN, Text("a")]
    assert read() == []


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        ({"reasoning": "r"}, [Reasoning("r")]),
        ({"reasoning": "r", "reasoning_content": "r"}, [Reasoning("r")]),
        ({"refusal": "no"}, [Text("no")]),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "thinking"}, {"type": "text", "text": "b"}]},
            [Text("a"), Text("b")],
        ),
        ({"content": [3], "reasoning": {}}, []),
    ],
)
def test_engines_say_the_same_differently(delta: dict[str, object], said: list[Piece]) -> None:
    document = json.dumps({"id": "c", "model": "m", "choices": [{"delta": delta}]}).encode()

    assert read(stream(document)) == [BEGUN, *said]


def test_thoughts_among_the_parts_of_what_is_said_are_thoughts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]}
    odd: list[object] = [{"type": "thinking", "thinking": "so"}, {"type": "image_url"}, {"type": "text", "text": "a"}]

    assert read(stream(chunk(content=[thought]), chunk(content=odd), chunk(content="b"))) == [
        BEGUN,
        Reasoning("hm"),
        Reasoning("so"),
        Text("a"),
        Text("b"),
    ]


def test_the_one_call_of_the_days_before_tools_is_a_call() -> None:
    pieces = [{"name": "look", "arguments": ""}, {"arguments": '{"x":'}, {"arguments": "1}"}]
    message = {"content": None, "function_call": {"name": "look", "arguments": '{"x":1}'}}
    whole = {"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "function_call"}]}
    called, over = CallBegun(0, "", "look"), [Finished("function_call", ""), Done()]

    assert read(
        stream(*(chunk(function_call=piece) for piece in pieces), chunk(finish="function_call"), b"[DONE]")
    ) == [
        BEGUN,
        called,
        CallArguments(0, '{"x":'),
        CallArguments(0, "1}"),
        *over,
    ]
    assert read_chat_answer(json.dumps(whole).encode()) == [BEGUN, called, CallArguments(0, '{"x":1}'), *over]


def test_a_call_that_is_told_in_both_ways_is_one() -> None:
    both = chunk(tool_calls=[call(0, "a", "look", "{}")], function_call={"name": "look", "arguments": "{}"})

    assert read(stream(both))[1:] == [CallBegun(0, "a", "look"), CallArguments(0, "{}")]


def test_tokens_of_reasoning_are_told_where_the_engine_tells_them() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 3}}

    assert read(stream(chunk(usage=usage)))[1:] == [Used(Usage(prompt_tokens=5, completion_tokens=4), 3)]


def test_only_the_first_choice_is_read() -> None:
    second = {"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}

    assert read(stream(json.dumps({"id": "c", "model": "m", "choices": [second]}).encode())) == [BEGUN]


def test_the_stop_sequence_is_told_where_it_is_a_text() -> None:
    assert read(stream(chunk(finish="stop", stop="END")))[1:] == [Finished("stop", "END")]
    assert read(stream(chunk(finish="stop", stop=128009)))[1:] == [Finished("stop", "")]


FIRST, SECOND = CallBegun(0, "a", "look"), CallBegun(1, "b", "see")


@pytest.mark.parametrize(
    ("deltas", "pieces"),
    [
        # as most engines do it
        (
            [call(0, "a", "look", ""), call(0, arguments="{"), call(0, arguments="}"), call(1, "b", "see", "{}")],
            [FIRST, CallArguments(0, "{"), CallArguments(0, "}"), SECOND, CallArguments(1, "{}")],
        ),
        # arguments of two calls mixed
        (
            [call(0, "a", "look"), call(1, "b", "see"), call(0, arguments="1"), call(1, arguments="2")],
            [FIRST, CallArguments(0, "1"), SECOND, CallArguments(1, "2")],
        ),
        # id and name in fragments
        (
            [call(0, "a"), call(0, name="lo"), call(0, name="ok"), call(0, arguments="{}")],
            [FIRST, CallArguments(0, "{}")],
        ),
        # both again before the arguments
        ([call(0, "a", "look", ""), call(0, "a", "look", "{}")], [FIRST, CallArguments(0, "{}")]),
        # both again with every piece
        (
            [call(0, "a", "look", "{"), call(0, "a", "look", "}")],
            [FIRST, CallArguments(0, "{"), CallArguments(0, "}")],
        ),
        # one index for all
        (
            [call(0, "a", "look", "{}"), call(0, "b", "see", "[]")],
            [FIRST, CallArguments(0, "{}"), SECOND, CallArguments(1, "[]")],
        ),
        # no index
        (
            [call(None, "a", "look", "{}"), call(None, "b", "see", "["), call(None, "b", arguments="]")],
            [FIRST, CallArguments(0, "{}"), SECOND, CallArguments(1, "["), CallArguments(1, "]")],
        ),
        # neither index nor id
        (
            [call(None, None, "look", "{}"), call(None, None, "see", "["), call(None, None, None, "]")],
            [
                CallBegun(0, "", "look"),
                CallArguments(0, "{}"),
                CallBegun(1, "", "see"),
                CallArguments(1, "["),
                CallArguments(1, "]"),
            ],
        ),
        # arguments as an object, none at all, nothing at all
        (
            [call(0, "a", "look", {"x": [1]}), call(1, "b", "see"), call(2)],
            [FIRST, CallArguments(0, '{"x": [1]}'), SECOND],
        ),
    ],
)
def test_calls(deltas: list[object], pieces: list[Piece]) -> None:
    assert calls(*deltas) == pieces


def test_a_call_without_arguments_begins_at_the_finish_at_the_latest() -> None:
    whole = stream(chunk(tool_calls=[call(0, "a", "look")]), chunk(finish="tool_calls"), b"[DONE]")

    assert read(whole) == [BEGUN, FIRST, Finished("tool_calls", ""), Done()]


def test_calls_are_bounded() -> None:
    pieces = calls(*(call(index, f"c{index}", "look", "{}") for index in range(CALLS_MAX + 5)))

    assert isinstance(pieces[-1], Failed)
    assert len([piece for piece in pieces if isinstance(piece, CallBegun)]) == CALLS_MAX


@pytest.mark.parametrize(
    ("document", "failure"),
    [
        (b'{"error": {"message": "out of memory", "code": 503}}', Failed("out of memory", 503)),
        (b'{"error": {"message": "odd", "code": "x"}}', Failed("odd")),
        (b'{"error": "plain"}', Failed("plain")),
        (b'{"error": {}}', Failed("the engine failed")),
        (b'{"error": 3}', Failed("the engine failed")),
        (b'{"object": "error", "message": "flat", "code": 400}', Failed("flat", 400)),
        (b"no json", Failed("the engine sent what is no Chat Completions answer")),
        (b'{"choices": 3}', Failed("the engine sent what is no Chat Completions answer")),
        (b'{"choices":' + b"[" * 60_000, Failed("the engine sent what is no Chat Completions answer")),
    ],
)
def test_a_failure_ends_the_answer(document: bytes, failure: Failed) -> None:
    assert read(stream(chunk(content="a"), document, chunk(content="b"), b"[DONE]")) == [BEGUN, Text("a"), failure]


def test_an_event_without_end_is_a_failure_and_no_hole() -> None:
    reader = ChatStreamReader()
    half = b"x" * (ANSWER_BYTES_MAX // 2 + 10)

    assert reader.feed(b'data: {"choices":[{"delta":{"content":"' + half) == []
    (failure,) = reader.feed(half)
    assert isinstance(failure, Failed)
    assert reader.feed(b"\n\n" + stream(chunk(content="b"))) == []


def test_a_long_event_is_no_failure() -> None:
    text = "x" * 1_000_000

    assert read(stream(chunk(content=text))) == [BEGUN, Text(text)]


def test_an_unreadable_usage_hides_nothing() -> None:
    assert read(stream(chunk(content="a", usage={"prompt_tokens": "many"}))) == [BEGUN, Text("a")]


def test_a_whole_answer_has_the_same_pieces() -> None:
    message = {
        "content": None,
        "reasoning": "r",
        "tool_calls": [call(None, "a", "look", "{}"), call(None, "b", "see", {})],
    }
    body = {"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "tool_calls"}]}

    assert read_chat_answer(json.dumps(body).encode()) == [
        BEGUN,
        Reasoning("r"),
        FIRST,
        CallArguments(0, "{}"),
        SECOND,
        CallArguments(1, "{}"),
        Finished("tool_calls", ""),
        Done(),
    ]
    assert read_chat_answer(b'{"choices":[{"message":{}}]}') == [Begun("", ""), Done()]
    assert read_chat_answer(b'{"choices":[]}') == [Begun("", "")]
    assert read_chat_answer(b"<html>") == [Failed("the engine sent what is no Chat Completions answer")]


@pytest.mark.parametrize("name", ["chat_text", "chat_tool", "chat_stop"])
def test_a_real_stream_says_the_same_however_it_is_cut(name: str) -> None:
    whole = (GOLDEN / f"{name}.sse").read_bytes()
    pieces = read(whole)

    assert isinstance(pieces[-1], Done)
    assert not any(isinstance(piece, Failed) for piece in pieces)
    for cut in range(0, len(whole), 13):
        assert read(whole[:cut], whole[cut:]) == pieces, cut
    assert read(*(whole[at : at + 1] for at in range(len(whole)))) == pieces


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_whatever_comes_is_read(documents: list[bytes]) -> None:
    pieces = read(*(b"data: " + document + b"\n\n" for document in documents))

    assert [piece for piece in pieces[:-1] if isinstance(piece, Done | Failed)] == []


@pytest.mark.parametrize("arguments", [b'"\xff"', b'{"x":"\xff"}'])
def test_arguments_that_are_no_text_are_a_failure(arguments: bytes) -> None:
    call = b'{"index":0,"id":"a","function":{"name":"f","arguments":%b}}' % arguments
    reader = ChatStreamReader()
    pieces = reader.feed(b'data: {"choices":[{"delta":{"tool_calls":[%b]}}]}\n\n' % call)
    assert pieces[-1] == Failed("the engine sent what is no Chat Completions answer")
    assert reader.end() == []


@pytest.mark.parametrize("said", [b"null", b'""', b"{}", b"false", b"[]", b"0"], ids=range(6))
def test_an_error_member_that_means_nothing_is_none(said: bytes) -> None:
    pieces = read(stream(b'{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"error":%b}' % said))
    assert pieces == [Begun("", ""), Text("a"), Finished("stop", "")]


@pytest.mark.parametrize(
    "said",
    [
        b'event: error\ndata: {"message":"boom"}\n\ndata: [DONE]\n\n',
        b'data: {"object":"error","message":"boom"}\n\n',
        b'data: {"error":"boom"}\n\n',
        b'data: {"error":{"message":"boom"}}\n\n',
    ],
    ids=["an event of its own", "vLLM's old one", "a text", "OpenAI's"],
)
def test_an_error_is_known_in_whatever_shape_it_comes(said: bytes) -> None:
    assert read(said)[-1] == Failed("boom")


def test_arguments_that_come_before_the_name_wait_for_it() -> None:
    assert calls(
        call(0, "a", None, '{"x"'), call(1, "b", "see", "{}"), call(0, None, "lo"), call(0, None, "ok", ":1}")
    ) == [
        CallBegun(0, "b", "see"),
        CallArguments(0, "{}"),
        CallBegun(1, "a", "look"),
        CallArguments(1, '{"x"'),
        CallArguments(1, ":1}"),
    ]


def test_a_call_that_is_never_named_is_told_with_its_arguments() -> None:
    assert calls(call(None, "a", None, "{}")) == [CallBegun(0, "a", ""), CallArguments(0, "{}")]


@pytest.mark.parametrize("index", [None, 0])
def test_a_call_of_which_only_arguments_are_said_is_not_lost(index: int | None) -> None:
    assert calls(call(index, None, None, "{}")) == [CallBegun(0, "", ""), CallArguments(0, "{}")]


def test_half_an_emoji_is_shown_as_such_and_costs_no_turn() -> None:
    assert Text("a\ufffdb") in read(stream(rb'{"choices":[{"delta":{"content":"a\ud83db"}}]}'))
