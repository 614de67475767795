import json

import pytest

from luftpause.core.dialects.chat_documents import CHUNK, Used, error_of, is_error, used_in
from luftpause.core.model.turns import Usage


def test_a_message_says_its_texts_in_order() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "b"}]
    message = {"content": content, "reasoning": "r", "refusal": "no"}
    choice = (CHUNK.decode(json.dumps({"choices": [{"message": message}]})).choices or [])[0]

    assert choice.message is not None
    assert list(choice.message.texts()) == [("r", True), ("a", False), ("hm", True), ("b", False), ("no", False)]


@pytest.mark.parametrize(
    ("usage", "used"),
    [
        ({"prompt_tokens": 3}, Used(Usage(prompt_tokens=3, completion_tokens=0))),
        (
            {
                "completion_tokens": 2,
                "completion_tokens_details": {"reasoning_tokens": 1},
                "prompt_tokens_details": None,
            },
            Used(Usage(prompt_tokens=0, completion_tokens=2), 1),
        ),
        ("some", None),
        (None, None),
    ],
)
def test_tokens_are_read_where_they_can_be(usage: object, used: Used | None) -> None:
    assert used_in(CHUNK.decode(json.dumps({"usage": usage}))) == used


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"error": {"message": "busy", "code": 503}}, ("busy", 503)),
        ({"error": "busy"}, ("busy", 0)),
        ({"object": "error", "message": "flat", "code": 400}, ("flat", 400)),
        ({"object": "error", "message": 3}, ("the engine failed", 0)),
    ],
)
def test_errors_are_read_in_every_form(document: object, told: tuple[str, int]) -> None:
    chunk = CHUNK.decode(json.dumps(document))

    assert is_error(chunk)
    assert error_of(chunk) == told
