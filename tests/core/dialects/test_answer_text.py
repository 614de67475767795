import json

import pytest

from luftpause.core.dialects.answer_text import AnswerText
from luftpause.core.dialects.chat_said import text_in_chat_answer
from luftpause.core.dialects.said import TEXT_CHARS_MAX


def heard(*, stream: bool) -> AnswerText:
    return AnswerText(text_in_chat_answer, stream=stream)


@pytest.mark.parametrize("end", [b"\n\n", b""])
def test_the_text_of_a_stream_is_joined_wherever_it_is_cut(end: bytes) -> None:
    stream = b"\n\n".join(
        b"data: %b" % json.dumps({"choices": [{"delta": delta}]}).encode()
        for delta in ({"role": "assistant"}, {"content": "Hel"}, {"reasoning_content": "hm"}, {"content": "lo"})
    )
    stream += end
    for cut in range(len(stream)):
        answer = heard(stream=True)
        answer.feed(stream[:cut])
        answer.feed(stream[cut:])
        assert answer.text() == "Hello"


def test_the_text_of_a_whole_answer_is_read_at_its_end() -> None:
    answer = heard(stream=False)
    for piece in (b'{"choices":[{"message":', b'{"content":"Hello"}}]}'):
        answer.feed(piece)
    assert answer.text() == "Hello"
    assert answer.text() == "Hello"


@pytest.mark.parametrize("stream", [True, False])
def test_too_long_a_text_is_not_kept(stream: bool) -> None:
    answer = heard(stream=stream)
    chunk = json.dumps({"choices": [{"delta": {"content": "x" * 1000}}]}).encode()
    for _ in range(TEXT_CHARS_MAX // 1000 + 2):
        answer.feed(b"data: " + chunk + b"\n\n")
    assert answer.text() is None
    assert sum(map(len, answer._texts)) <= TEXT_CHARS_MAX + 1000
