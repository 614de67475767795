import json

import pytest

from core.dialects.anthropic_messages.requests import HELLO
from luftpause.core.dialects.anthropic_messages.count_tokens import counted, counting_request
from luftpause.core.dialects.request import BadRequestError


def test_the_question_is_the_conversation_with_one_token_to_answer() -> None:
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    body = {"model": "m", "system": "s", "messages": [HELLO], "tools": tools, "stream": True, "max_tokens": 0}

    question = json.loads(counting_request(json.dumps(body).encode()))

    assert question.pop("tools")[0]["function"]["name"] == "look"
    assert question == {"model": "m", "messages": [{"role": "system", "content": "s"}, HELLO], "max_tokens": 1}


def test_what_cannot_be_said_cannot_be_counted() -> None:
    with pytest.raises(BadRequestError, match="web_search"):
        counting_request(json.dumps({"model": "m", "messages": [HELLO], "tools": [{"type": "web_search_1"}]}).encode())


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (b'{"input_tokens": 37, "object": "response.input_tokens"}', 37),
        (b'{"count": 5, "max_model_len": 9, "tokens": [1, 2, 3, 4, 5]}', 5),
        (b'{"tokens": [28120, 665]}', 2),
        (b'{"id": "c", "choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 1}}', 8),
        (b'{"input_tokens": 0}', 0),
    ],
)
def test_an_engines_count_is_told(body: bytes, tokens: int) -> None:
    assert counted(body) == b'{"input_tokens":%d}' % tokens


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b'{"count": "many"}', b'{"count": -1}', b"[" * 60_000])
def test_an_answer_without_a_count_is_none(body: bytes) -> None:
    assert counted(body) is None
