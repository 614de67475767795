import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.dialect import Peek
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.request import MODEL_CHARS_MAX, BadRequestError
from luftpause.core.model.ids import ModelName, ToolCallId

CHAT = OpenAiChat()
PATH = "/v1/chat/completions"

CONVERSATION = b"""{"model": "m", "messages": [
    {"role": "user", "content": "hi", "tool_calls": null},
    {"role": "assistant", "tool_calls": [{"id": "call_1"}, {"id": "call_2"}, {"id": ""}, {"id": null}]},
    {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "x"}]},
    {"role": "tool", "tool_call_id": "call_3"}]}"""


@pytest.mark.parametrize("with_tool_calls", [False, True])
@pytest.mark.parametrize(
    ("body", "stream"),
    [
        (b'{"model":"m"}', False),
        (b'{"model":"m","stream":true}', True),
        (b'\n{ "stream" : false , "model" : "m", "x": [1e400, {"a": -0.0}] }', False),
        (b'{"model":"m","stream":null}', False),
    ],
)
def test_model_and_stream_are_read(body: bytes, stream: bool, with_tool_calls: bool) -> None:
    peek = CHAT.peek(PATH, body, with_identity=with_tool_calls)
    assert peek == Peek(model=ModelName("m"), stream=stream, call_words=peek.call_words)


@pytest.mark.parametrize("with_tool_calls", [False, True])
@pytest.mark.parametrize(
    ("said", "most"),
    [
        (b'"max_tokens":50', 50),
        (b'"max_completion_tokens":70,"max_tokens":50', 70),
        (b'"max_completion_tokens":null,"max_tokens":50', 50),
        (b'"max_tokens":' + b"9" * 40, 1_000_000_000),
        (b'"max_tokens":0', 0),
        (b'"max_tokens":-1', 0),
        (b'"max_tokens":true', 0),
        (b'"max_tokens":"50"', 0),
    ],
)
def test_the_longest_answer_is_read_where_it_is_a_number(said: bytes, most: int, with_tool_calls: bool) -> None:
    body = b'{"model":"m",' + said + b"}"
    assert CHAT.peek(PATH, body, with_identity=with_tool_calls).reply_max == most


def test_tool_call_ids_are_read_only_when_asked_for() -> None:
    ids = (ToolCallId("call_1"), ToolCallId("call_2"), ToolCallId("call_3"))

    assert CHAT.peek(PATH, CONVERSATION, with_identity=True).tool_calls == ids
    assert CHAT.peek(PATH, CONVERSATION, with_identity=False).tool_calls == ()


@pytest.mark.parametrize(
    "messages", [b'"text"', b"[1]", b'[{"tool_calls": 3}]', b'[{"tool_call_id": 7}]', b"[" * 60_000 + b"]" * 60_000]
)
def test_odd_messages_are_the_engines_to_judge(messages: bytes) -> None:
    body = b'{"model": "m", "messages": ' + messages + b"}"
    if messages.startswith(b"[["):
        with pytest.raises(BadRequestError, match="nested too deeply"):
            CHAT.peek(PATH, body, with_identity=True)
    else:
        peek = CHAT.peek(PATH, body, with_identity=True)
        assert (peek.model, peek.stream, peek.tool_calls) == ("m", False, ())


@pytest.mark.parametrize("with_tool_calls", [False, True])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not valid JSON"),
        (b"hello", "not valid JSON"),
        (b'{"model": "m"', "not valid JSON"),
        (b'{"model": "m"} x', "not valid JSON"),
        (b'{"model": "\xff"}', "not valid JSON"),
        (b'["m"]', "expected `object`, got `array`"),
        (b"null", "expected `object`"),
        (b"{}", "`model` is missing"),
        (b'{"model": ""}', "`model` is empty"),
        (b'{"model": 3}', r"expected `str`, got `int` - at `\$.model`"),
        (b'{"model": null}', r"at `\$.model`"),
        (b'{"model": "m", "stream": "yes"}', r"at `\$.stream`"),
        (b'{"model": "m", "model": "n"}', "more than once"),
        (rb'{"model": "m", "mo\u0064el": "n"}', "more than once"),
        (b'{"model": "' + b"m" * (MODEL_CHARS_MAX + 1) + b'"}', "longer than"),
        (b'{"model": "m", "x": {"model": 1}, "y": [}', "not valid JSON"),
    ],
)
def test_what_cannot_be_routed_is_refused_with_a_reason(body: bytes, message: str, with_tool_calls: bool) -> None:
    with pytest.raises(BadRequestError, match=message):
        CHAT.peek(PATH, body, with_identity=with_tool_calls)


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "m", "tools": [{"parameters": {"model": {"model": 1}, "other": {"model": 2}}}]}',
        rb'{"messages": [{"content": "{\"model\": \"a\", \"model\": \"b\"}"}], "model": "m", "x": "model"}',
    ],
)
def test_a_nested_or_quoted_model_is_no_repeat(body: bytes) -> None:
    assert CHAT.peek(PATH, body, with_identity=False).model == "m"


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:model0strea ', max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(BadRequestError):
        assert CHAT.peek(PATH, body, with_identity=True).model


@pytest.mark.parametrize("with_tool_calls", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        rb'{"model":"m","messages":[{"role":"user","content":"cut \ud83d"}]}',
        rb'{"model":"m","messages":[],"x\ude00":1}',
        b'{"model":"m","messages":[{"content":"\xff"}],"tools":[{"model":1}]}',
        b'{"model":"m","messages":[],"seed":' + b"1" * 5000 + b',"tools":[{"model":1}]}',
        b'{"model":"m","metadata":{"model":"other","model":"another"}}',
        b'{"model":"m","messages":[{"content":"a: b, \\"model\\": c"}],"user":"x:y"}',
    ],
)
def test_odd_but_sound_bodies_pass(body: bytes, with_tool_calls: bool) -> None:
    assert CHAT.peek(PATH, body, with_identity=with_tool_calls).model == "m"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"model":"m","stream":false,"stream":true}', "stream"),
        (b'{"model":"m","messages":[],"messages":[{"content":"' + b"x" * 500 + b'"}]}', "messages"),
        (
            b'{"model":"m","messages":[{"content":"'
            + b"x" * 500
            + b'"}],"messages":[{"content":"'
            + b"x" * 500
            + b'"}]}',
            "messages",
        ),
        (rb'{"model":"m","\u006dodel":"other"}', "model"),
        (rb'{"model":"m","temperature":0,"temperature":0,"x":"\ud83d"}', "temperature"),
    ],
)
def test_a_repeated_top_level_key_is_refused_by_name(body: bytes, named: str) -> None:
    with pytest.raises(BadRequestError, match=f'"{named}" more than once'):
        CHAT.peek(PATH, body, with_identity=False)


def test_what_cannot_be_written_as_utf8_is_no_model_and_no_tool_call() -> None:
    with pytest.raises(BadRequestError, match="surrogate"):
        CHAT.peek(PATH, rb'{"model":"\ud83d"}', with_identity=False)
    body = rb'{"model":"m","messages":[{"tool_call_id":"\ud83d"},{"tool_call_id":"fine"}]}'
    assert CHAT.peek(PATH, body, with_identity=True).tool_calls == ("fine",)


def test_one_odd_message_does_not_hide_the_ids_of_the_others() -> None:
    messages = b'[{"tool_calls":[null,{"id":"a"},{"id":3}]},7,{"tool_call_id":9},{"tool_call_id":"b"}]'
    body = b'{"model":"m","messages":' + messages + b"}"
    assert CHAT.peek(PATH, body, with_identity=True).tool_calls == ("a", "b")
