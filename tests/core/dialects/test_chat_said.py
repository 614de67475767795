import json

import pytest

from luftpause.core.dialects.chat_said import AnswerText, conversation_in
from luftpause.core.dialects.said import TEXT_CHARS_MAX, Utterance


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
    assert conversation_in(json.dumps(body).encode()) == [
        Utterance("system", "Help."),
        Utterance("user", "What now?"),
        Utterance("assistant", ""),
        Utterance("tool", ""),
        Utterance("", ""),
    ]


ASKED, ANSWERED = {"role": "user", "content": "What now?"}, {"role": "assistant", "content": [{"text": "Wait."}]}


@pytest.mark.parametrize(
    "body",
    [
        {"system": [{"type": "text", "text": "Help."}], "messages": [ASKED, ANSWERED]},
        {"instructions": "Help.", "input": [ASKED, {"type": "reasoning", "id": "r", "summary": []}, ANSWERED]},
    ],
)
def test_what_is_said_beside_the_messages_is_said_first(body: dict[str, object]) -> None:
    said = [Utterance("system", "Help."), Utterance("user", "What now?"), Utterance("assistant", "Wait.")]
    assert conversation_in(json.dumps(body).encode()) == said


def test_a_text_alone_is_the_users() -> None:
    assert conversation_in(b'{"input": "What now?"}') == [Utterance("user", "What now?")]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"messages": 3}', b'{"messages": [3]}', b'{"x": ' + b"[" * 99_999])
def test_what_cannot_be_read_says_nothing(body: bytes) -> None:
    assert list(conversation_in(body)) == []


def test_the_text_of_a_stream_is_joined_wherever_it_is_cut() -> None:
    stream = b"".join(
        b"data: %b\n\n" % json.dumps({"choices": [{"delta": delta}]}).encode()
        for delta in ({"role": "assistant"}, {"content": "Hel"}, {"reasoning_content": "hm"}, {"content": "lo"})
    )
    for cut in range(len(stream)):
        answer = AnswerText(stream=True)
        answer.feed(stream[:cut])
        answer.feed(stream[cut:])
        assert answer.text() == "Hello"


def test_the_text_of_a_whole_answer_is_read_at_its_end() -> None:
    answer = AnswerText(stream=False)
    for piece in (b'{"choices":[{"message":', b'{"content":"Hello"}}]}'):
        answer.feed(piece)
    assert answer.text() == "Hello"
    assert answer.text() == "Hello"


@pytest.mark.parametrize("stream", [True, False])
def test_too_long_a_text_is_not_kept(stream: bool) -> None:
    answer = AnswerText(stream=stream)
    chunk = json.dumps({"choices": [{"delta": {"content": "x" * 1000}}]}).encode()
    for _ in range(TEXT_CHARS_MAX // 1000 + 2):
        answer.feed(b"data: " + chunk + b"\n\n")
    assert answer.text() is None
    assert sum(map(len, answer._texts)) <= TEXT_CHARS_MAX + 1000
