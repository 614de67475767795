"""Made-up token ids."""

from typing import Any

import msgspec

from luftpause.testkit.fake_engine.conversations import Chat, pieces
from luftpause.testkit.fake_engine.tokenize import VOCABULARY, Tokenize, tokenized


def ids(**body: object) -> list[int]:
    answer: dict[str, Any] = tokenized(msgspec.convert({"model": "m", **body}, Tokenize).pieces(), 1000)
    assert (answer["count"], answer["max_model_len"]) == (len(answer["tokens"]), 1000)
    return list(answer["tokens"])


def test_the_same_text_has_the_same_ids_and_another_one_others() -> None:
    assert ids(prompt="some text") == ids(prompt="some text")
    assert ids(prompt="some text") != ids(prompt="same text")
    assert all(0 <= token < VOCABULARY for token in ids(prompt="some text" * 100))


def test_messages_count_as_many_tokens_as_they_do_in_a_chat() -> None:
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "Where does the Danube rise?"}]
    tools = [{"type": "function", "function": {"name": "lookup"}}]
    chat = msgspec.convert({"model": "m", "messages": messages, "tools": tools}, Chat)
    assert len(ids(messages=messages, tools=tools)) == sum(piece.tokens for piece in pieces(chat))


def test_a_longer_conversation_begins_with_the_ids_of_the_shorter_one() -> None:
    messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    short, long = ids(messages=messages[:1]), ids(messages=messages)
    assert long[: len(short)] == short
