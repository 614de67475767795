import json
from typing import Any

import msgspec
import pytest

from luftpause.core.dialects.chat_answer import ChatStreamReader, read_chat_answer
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
    with pytest.raises(UnfitAnswerError, match="event stream"):
        in_pieces(body)
