import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dialects.anthropic_messages.requests import HELLO, MESSAGES, PATH, assistant, result, text, use, user, written
from luftpause.core.dialects.dialect import Peek, TranslatedDialect, Translation, UnfitAnswerError
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.model.ids import ModelName, ToolCallId

M = ModelName("m")
FAILURE = Failure(code=FailureCode.EXPIRED, message="waited too long")
CONVERSATION = written(
    HELLO,
    assistant(text("a"), use("toolu_1"), use("toolu_2"), {"type": "server_tool_use", "id": "no"}),
    user(
        result("toolu_2", [text("x"), {"type": "tool_use", "id": "nested"}]),
        result("toolu_1"),
        {"type": "text", "id": "no"},
    ),
    assistant(use("toolu_3")),
    user(result("toolu_4")),
)
IDS = tuple(ToolCallId(f"toolu_{number}") for number in (1, 2, 3, 4))


def test_it_is_what_the_door_asks_for() -> None:
    dialect: TranslatedDialect = MESSAGES
    translation: Translation = dialect.translate(PATH, written())

    assert dialect.name == "messages"
    assert json.loads(translation.request)["model"] == "m"


@pytest.mark.parametrize("path", [PATH, "/v1/messages/count_tokens"])
@pytest.mark.parametrize(("members", "stream"), [({}, False), ({"stream": True}, True), ({"stream": None}, False)])
def test_model_and_stream_are_read(path: str, members: dict[str, object], stream: bool) -> None:
    peek = MESSAGES.peek(path, written(**members), with_identity=True)
    assert peek == Peek(model=M, stream=stream, reply_max=9, call_words=peek.call_words)


@pytest.mark.parametrize("with_identity", [False, True])
@pytest.mark.parametrize(("members", "most"), [({"max_tokens": 50}, 50), ({"max_tokens": 50.0}, 0)])
def test_the_longest_answer_is_read(members: dict[str, object], most: int, with_identity: bool) -> None:
    assert MESSAGES.peek(PATH, written(**members), with_identity=with_identity).reply_max == most


def test_echoed_ids_are_read_only_when_asked_for() -> None:
    assert MESSAGES.peek(PATH, CONVERSATION, with_identity=True).tool_calls == IDS
    assert MESSAGES.peek(PATH, CONVERSATION, with_identity=False).tool_calls == ()


@pytest.mark.parametrize(
    "odd",
    ['"x"', "[1]", "{}", '{"content": 3}', '{"content": [3, {"type": 7}, {"type": "tool_use", "id": 7}]}', '"\\ud800"'],
)
def test_odd_messages_are_the_engines_to_judge_and_hide_no_others(odd: str) -> None:
    messages = json.loads(CONVERSATION)["messages"]
    body = b'{"model": "m", "messages": [%b, %b' % (odd.encode(), json.dumps(messages).encode()[1:]) + b"}"

    peek = MESSAGES.peek(PATH, body, with_identity=True)
    assert (peek.model, peek.stream, peek.tool_calls) == (M, False, IDS)


def test_an_id_that_is_no_text_is_left_out() -> None:
    blocks = rb'[{"type": "tool_use", "id": "\ud800"}, {"type": "tool_use", "id": ""}]'
    body = b'{"model": "m", "messages": [{"content": ' + blocks + b"}]}"

    assert MESSAGES.peek(PATH, body, with_identity=True).tool_calls == ()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"hello", "not valid JSON"),
        (b"[]", "expected `object`"),
        (b'{"messages": []}', "`model` is missing"),
        (b'{"model": "m", "stream": "yes"}', r"at `\$.stream`"),
        (b'{"model": "m", "messages": [], "messages": []}', "more than once"),
        (b'{"model": "m", "messages": ' + b"[" * 60_000 + b"]" * 60_000 + b"}", "nested too deeply"),
    ],
)
def test_what_cannot_be_routed_is_refused(body: bytes, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        MESSAGES.peek(PATH, body, with_identity=True)


@given(st.recursive(st.none() | st.booleans() | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3)))
def test_whatever_the_messages_are_the_model_is_found(messages: object) -> None:
    body = json.dumps({"messages": messages, "model": "m"}).encode()

    assert MESSAGES.peek(PATH, body, with_identity=True).model == M


def test_failures_are_written_in_its_own_shape() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "waited too long", "code": "expired"}}

    assert json.loads(MESSAGES.error(FAILURE)) == body
    assert MESSAGES.error_event(FAILURE) == b"event: error\ndata: " + MESSAGES.error(FAILURE) + b"\n\n"


def test_a_ping_is_a_whole_event() -> None:
    assert MESSAGES.ping == b'event: ping\ndata: {"type": "ping"}\n\n'


@pytest.mark.parametrize("stream", [True, False])
def test_a_translation_answers_as_was_asked(stream: bool) -> None:
    translation = MESSAGES.translate(PATH, written(stream=stream))

    assert translation.feed(b"") == b""
    if stream:
        assert b"the engine sent no answer" in translation.end()
    else:
        with pytest.raises(UnfitAnswerError, match="the engine sent no answer"):
            translation.end()
    assert json.loads(translation.error(400, b'{"error": {"message": "no"}}'))["error"]["message"] == "no"


def test_translations_share_nothing() -> None:
    one, other = MESSAGES.translate(PATH, written()), MESSAGES.translate(PATH, written())
    one.feed(b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}')

    with pytest.raises(UnfitAnswerError, match="the engine sent no answer"):
        other.end()
    assert b'"text":"a"' in one.end()
