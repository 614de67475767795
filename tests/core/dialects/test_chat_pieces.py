import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.chat_answer import ChatStreamReader, Failed, Piece, read_chat_answer
from luftpause.core.dialects.chat_assembly import ChatAssembly
from luftpause.core.dialects.chat_pieces import in_pieces
from luftpause.core.dialects.dialect import UnfitAnswerError

CALLS = [
    {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
    {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
]
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


def whole(*messages: dict[str, Any], **more: object) -> dict[str, Any]:
    choices = [
        {"index": at, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        for at, message in enumerate(messages)
    ]
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": choices, "usage": USAGE, **more}


ANSWERS = [
    whole({"content": "Hello\n\nthere"}),
    whole({"content": "", "reasoning_content": "hm", "tool_calls": CALLS}),
    whole({"content": "one"}, {"content": "two"}, timings={"x": 1.0}),
    whole({"content": "Hel"}),
]
ANSWERS[-1]["choices"][0] |= {"stop_reason": "lo", "logprobs": {"content": [{"token": "Hel"}]}}


@pytest.mark.parametrize("answer", ANSWERS)
def test_put_together_again_it_is_what_it_was(answer: dict[str, Any]) -> None:
    assembly = ChatAssembly()
    assembly.feed(in_pieces(json.dumps(answer, indent=2).encode()))

    assert msgspec.json.decode(assembly.end()) == answer


@pytest.mark.parametrize("answer", ANSWERS)
def test_it_says_what_the_whole_says(answer: dict[str, Any]) -> None:
    body, reader = json.dumps(answer).encode(), ChatStreamReader()

    assert [*reader.feed(in_pieces(body)), *reader.end()] == read_chat_answer(body)


def odd(**message: object) -> dict[str, Any]:
    return whole({"content": "seen", **message})


ODD_ANSWERS = [
    odd(content=5),
    odd(content=["a", 5]),
    odd(tool_calls=5),
    odd(tool_calls=[5]),
    odd(tool_calls=[None]),
    odd(tool_calls=[{"id": 5}]),
    odd(tool_calls=[{"function": {"name": None, "arguments": 5}}]),
    odd(tool_calls=[{"function": {"arguments": "{}"}}]),
    odd(tool_calls=[{"id": "a", "function": "f"}]),
    {**whole(), "choices": [{"message": "text", "finish_reason": "stop"}]},
    {**whole(), "choices": [{"message": None, "finish_reason": "stop"}]},
    {**whole(), "choices": [{"message": {}, "finish_reason": 7}]},
    {**whole(), "choices": [{"index": "x", "message": {"content": "seen"}}]},
    {**whole({"content": "seen"}), "choices": [7, {"message": {"content": "seen"}}]},
    {**whole({"content": "seen"}), "id": 5},
    {**whole({"content": "seen"}), "error": {"message": "boom"}},
]
VALUES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "{}"])
ODD_VALUES = st.recursive(
    VALUES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "index", "function", "name", "arguments", "type", "text"]), inner)
    ),
    max_leaves=5,
)


def said_of(body: bytes) -> list[Piece] | None:
    """Return what the pieces of an answer say; None where it cannot be said in pieces."""
    reader = ChatStreamReader()
    try:
        pieces = [*reader.feed(in_pieces(body)), *reader.end()]
    except UnfitAnswerError:
        return None
    assert not any(isinstance(piece, Failed) for piece in pieces), "it fails with a part of it said"
    return pieces


@pytest.mark.parametrize("answer", ODD_ANSWERS)
def test_what_cannot_be_read_whole_is_not_said_in_pieces_with_a_hole(answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    pieces = read_chat_answer(body)

    assert said_of(body) == (None if any(isinstance(piece, Failed) for piece in pieces) else pieces)


@given(st.dictionaries(st.sampled_from(["content", "reasoning", "refusal", "tool_calls"]), ODD_VALUES))
def test_whatever_is_said_whole_is_said_in_pieces_or_not_at_all(message: dict[str, object]) -> None:
    body = json.dumps(whole(message)).encode()
    pieces = read_chat_answer(body)

    assert said_of(body) == (None if any(isinstance(piece, Failed) for piece in pieces) else pieces)


def test_half_an_emoji_costs_no_turn() -> None:
    body = rb'{"choices":[{"message":{"content":"a\ud83db"},"finish_reason":"stop"}]}'

    assert said_of(body) == read_chat_answer(body)


def test_what_has_no_index_is_counted() -> None:
    first, second, *_ = in_pieces(b'{"choices":[{"message":{"tool_calls":[{"id":"a"},{"id":"b"}]}},{}]}').split(b"\n\n")

    choices = json.loads(first.removeprefix(b"data: "))["choices"]
    assert [choice["index"] for choice in choices] == [0, 1]
    assert [call["index"] for call in choices[0]["delta"]["tool_calls"]] == [0, 1]
    assert [choice["index"] for choice in json.loads(second.removeprefix(b"data: "))["choices"]] == [0, 1]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"data: {}", b'{"choices":{}}', b'{"choices":[]}', b'{"choices":[7]}', b"[" * 9000]
)
def test_what_says_nothing_is_no_answer(body: bytes) -> None:
    with pytest.raises(UnfitAnswerError, match=r"event stream|no Chat Completions answer"):
        in_pieces(body)
