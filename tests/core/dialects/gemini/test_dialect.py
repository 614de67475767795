import json

import pytest

from core.dialects.gemini.exchanges import (
    ARRAY,
    EVENTS,
    STREAM_PATH,
    WHOLE_PATH,
    call,
    model,
    result,
    text,
    user,
    written,
)
from luftpause.core.dialects.dialect import TranslatedDialect
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.gemini.dialect import Gemini
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.model.ids import ToolCallId

A, B = ToolCallId("a"), ToolCallId("b")


def test_it_is_a_dialect() -> None:
    dialects: list[TranslatedDialect] = [EVENTS, ARRAY]
    assert {dialect.name for dialect in dialects} == {"gemini"}
    assert [dialect.stream_type for dialect in dialects] == [b"text/event-stream", b"application/json"]


def test_the_path_says_where_to_go_and_the_contents_whose_it_is() -> None:
    body = written(model(call("f", "a"), call("g")), user(result("f", {}, "a"), result("g", {}, "b")), model="other")
    streamed = EVENTS.peek(STREAM_PATH, body, with_identity=True)
    assert (streamed.model, streamed.stream, streamed.tool_calls) == ("m", True, (A, B))
    whole = EVENTS.peek(WHOLE_PATH, body, with_identity=False)
    assert (whole.model, whole.stream, whole.tool_calls) == ("m", False, ())


@pytest.mark.parametrize("with_identity", [False, True])
@pytest.mark.parametrize(("config", "most"), [({"maxOutputTokens": 50}, 50), ({}, 0), ([50], 0), (None, 0)])
def test_the_longest_answer_is_read(config: object, most: int, with_identity: bool) -> None:
    body = written(user(text("x")), generationConfig=config)
    assert EVENTS.peek(WHOLE_PATH, body, with_identity=with_identity).reply_max == most


@pytest.mark.parametrize(
    "contents",
    [
        '[{"parts": [{"function_call": {"id": "a"}}, {"function_response": {"id": "b"}}]}]',
        '[{"parts": [{"functionCall": {"id": "a"}}, {"text": "\\ud83d"}, {"functionResponse": {"id": "b"}}]}]',
        '[{"parts": [{"functionCall": {"id": "a"}}, 1, {"functionResponse": {"id": 3}}]}, 4, {"parts": 5},'
        ' {"parts": [{"functionResponse": {"id": "b"}}]}]',
    ],
)
def test_ids_are_found_in_odd_contents_too(contents: str) -> None:
    body = f'{{"contents": {contents}}}'.encode()
    assert EVENTS.peek(STREAM_PATH, body, with_identity=True).tool_calls == (A, B)


@pytest.mark.parametrize(
    "contents", ["null", "3", '"x"', "{}", "[]", '[{"parts": [{"functionCall": {"id": "\\ud83d"}}]}]']
)
def test_contents_without_ids_have_none(contents: str) -> None:
    body = f'{{"contents": {contents}}}'.encode()
    assert EVENTS.peek(STREAM_PATH, body, with_identity=True).tool_calls == ()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"contents": [], "contents": []}'])
def test_what_is_no_object_is_refused_at_once(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        EVENTS.peek(STREAM_PATH, body, with_identity=False)


@pytest.mark.parametrize("code", list(FailureCode))
def test_failures_are_told_in_either_form(code: FailureCode) -> None:
    failure = Failure(code=code, message="why")
    error = {
        "error": {
            "code": failure.status,
            "message": "why",
            "status": json.loads(EVENTS.error(failure))["error"]["status"],
        }
    }
    assert json.loads(EVENTS.error(failure)) == error
    assert json.loads(EVENTS.error_event(failure)) == error
    assert EVENTS.error_event(failure).endswith(b"\n\n")
    assert json.loads(ARRAY.ping + ARRAY.error_event(failure)) == [error]


@pytest.mark.parametrize("dialect", [EVENTS, ARRAY])
def test_a_ping_is_a_blank_line(dialect: Gemini) -> None:
    assert dialect.ping == b"\n"


def test_what_an_engine_answers_is_looked_at_as_chat_completions() -> None:
    observer = EVENTS.observer(stream=True)
    observer.feed(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    assert (observer.done, observer.observed().finish) == (True, "stop")
    whole = EVENTS.observer(stream=False)
    whole.feed(b'{"choices":[{"finish_reason":"length"}]}')
    assert whole.observed().finish == "length"
