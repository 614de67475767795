import json
from collections.abc import Callable, Sequence

import pytest

from luftpause.core.dialects.chat_said import (
    said_in_chat,
    said_in_messages,
    said_in_responses,
    text_in_chat_answer,
)
from luftpause.core.dialects.said import Utterance

READERS = (said_in_chat, said_in_messages, said_in_responses)


def test_texts_are_read_whatever_shape_they_have() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Help."},
            {"role": "user", "content": [{"type": "text", "text": "What "}, {"type": "image_url"}, {"text": "now?"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
            {"role": "tool", "content": 7},
            {},
        ],
    }
    assert said_in_chat(json.dumps(body).encode()) == [
        Utterance("system", "Help."),
        Utterance("user", "What now?"),
        Utterance("assistant", ""),
        Utterance("tool", ""),
        Utterance("", ""),
    ]


ASKED, ANSWERED = {"role": "user", "content": "What now?"}, {"role": "assistant", "content": [{"text": "Wait."}]}


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (said_in_messages, {"system": [{"type": "text", "text": "Help."}], "messages": [ASKED, ANSWERED]}),
        (
            said_in_responses,
            {"instructions": "Help.", "input": [ASKED, {"type": "reasoning", "id": "r", "summary": []}, ANSWERED]},
        ),
    ],
)
def test_what_is_said_beside_the_messages_is_said_first(
    read: Callable[[bytes], Sequence[Utterance]], body: dict[str, object]
) -> None:
    said = [Utterance("system", "Help."), Utterance("user", "What now?"), Utterance("assistant", "Wait.")]
    assert read(json.dumps(body).encode()) == said


def test_a_text_alone_is_the_users() -> None:
    assert said_in_responses(b'{"input": "What now?"}') == [Utterance("user", "What now?")]


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (said_in_chat, {"messages": [ASKED], "input": 7, "system": {}, "instructions": []}),
        (said_in_messages, {"messages": [ASKED], "input": 7, "instructions": []}),
        (said_in_responses, {"input": [ASKED], "messages": 7, "system": {}}),
    ],
)
def test_a_member_of_another_dialect_hides_nothing(
    read: Callable[[bytes], Sequence[Utterance]], body: dict[str, object]
) -> None:
    assert read(json.dumps(body).encode()) == [Utterance("user", "What now?")]


def test_an_answer_of_several_items_is_one() -> None:
    items = [
        ASKED,
        {"role": "assistant", "content": "Wait"},
        {"type": "reasoning"},
        {"role": "assistant", "content": "."},
    ]
    body = json.dumps({"input": [*items, ASKED, {"role": "assistant", "content": "No."}]}).encode()
    assert [(each.role, each.text) for each in said_in_responses(body)] == [
        ("user", "What now?"),
        ("assistant", "Wait."),
        ("user", "What now?"),
        ("assistant", "No."),
    ]


def test_calls_and_results_beside_the_messages_are_messages_as_in_a_chat() -> None:
    calls = [{"type": "function_call", "name": "a"}, {"type": "custom_tool_call", "name": "b"}]
    results = [
        {"type": "function_call_output", "output": "sunny"},
        {"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": "warm"}]},
    ]
    body = json.dumps({"input": [ASKED, {"type": "reasoning"}, *calls, *results, ANSWERED]}).encode()
    assert [(each.role, each.text) for each in said_in_responses(body)] == [
        ("user", "What now?"),
        ("assistant", ""),
        ("tool", "sunny"),
        ("tool", "warm"),
        ("assistant", "Wait."),
    ]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"messages": 3, "input": 3}', b'{"messages": [3], "input": [3]}', b'{"x": ' + b"[" * 99_999]
)
def test_what_cannot_be_read_says_nothing(read: Callable[[bytes], Sequence[Utterance]], body: bytes) -> None:
    assert list(read(body)) == []


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"choices": [{"delta": {"role": "assistant"}}]}, ""),
        ({"choices": [{"delta": {"content": "a", "reasoning_content": "hm"}}]}, "a"),
        ({"choices": [{"index": 0, "message": {"content": [{"type": "text", "text": "a"}]}}, {"index": 1}]}, "a"),
        ({"choices": [{"index": 1, "delta": {"content": "b"}}]}, ""),
        ({"choices": [7]}, ""),
        ({"error": {}}, ""),
    ],
)
def test_the_text_of_an_answer_is_its_first_choices(document: object, text: str) -> None:
    assert text_in_chat_answer(json.dumps(document).encode()) == text


@pytest.mark.parametrize("document", [b"", b"[DONE]", b"[" * 99_999])
def test_what_is_no_answer_has_no_text(document: bytes) -> None:
    assert text_in_chat_answer(document) == ""
