from core.dialects.gemini.exchanges import EVENTS, call, model, result, text, user, written
from luftpause.core.dialects.gemini.request import read_request
from luftpause.core.dialects.gemini.spoken import utterances
from luftpause.core.dialects.said import Utterance, marks_of_answer, said_in


def test_texts_and_results_are_said_and_thoughts_are_not() -> None:
    body = written(
        user(text("a"), text("b")),
        model({"text": "hm", "thought": True}, text("c"), call("look")),
        user(result("look", {"x": 1})),
        systemInstruction={"parts": [text("s")]},
    )
    said = [
        Utterance("system", "s"),
        Utterance("user", "ab"),
        Utterance("assistant", "c"),
        Utterance("user", '{"x":1}'),
    ]
    assert list(utterances(read_request(body))) == said
    assert list(EVENTS.conversation(body)) == said


def test_a_conversation_without_ids_is_known_again_by_what_was_said() -> None:
    first = said_in(EVENTS.conversation(written(user(text("go")))))
    called = written(user(text("go")), model(call("look")), user(result("look", {})))
    second = said_in(EVENTS.conversation(called))
    assert set(marks_of_answer(first, "", has_calls=True)) & set(second.marks)
    assert not set(marks_of_answer(second, "", has_calls=True)) & set(second.marks)


def test_what_cannot_be_read_says_nothing() -> None:
    assert list(EVENTS.conversation(b'{"contents": 3}')) == []
