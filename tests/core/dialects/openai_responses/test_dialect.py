import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import APIError
from openai import BadRequestError as SdkBadRequestError

from core.dialects.openai_responses.exchanges import PATH, RESPONSES, call, chunk, output, sdk, translated, written
from luftpause.core.dialects.dialect import Peek, TranslatedDialect, Translation
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.model.ids import ModelName, ToolCallId

FAILURE = Failure(code=FailureCode.ENGINE_FAILED, message="engine a: went away")
CONVERSATION = written(
    {"role": "user", "content": "hi", "call_id": None},
    {"type": "reasoning", "summary": [], "id": "rs_1"},
    call("call_1"),
    {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "x"},
    output("call_2", [{"type": "input_text", "text": "call_id"}]),
    output("call_1", "ok"),
    {"type": "custom_tool_call_output", "call_id": "call_3", "output": "ok"},
    call(""),
    prompt_cache_key="key",
)
IDS = tuple(ToolCallId(f"call_{number}") for number in (1, 2, 3))


def test_it_is_what_the_door_asks_for() -> None:
    dialect: TranslatedDialect = RESPONSES
    translation: Translation = dialect.translate(PATH, written())

    assert dialect.name == "responses"
    assert json.loads(translation.request)["model"] == "m"


@pytest.mark.parametrize(("members", "stream"), [({}, False), ({"stream": True}, True), ({"stream": None}, False)])
@pytest.mark.parametrize("with_identity", [False, True])
def test_model_and_stream_are_read(members: dict[str, object], stream: bool, with_identity: bool) -> None:
    peek = RESPONSES.peek(PATH, written(**members), with_identity=with_identity)
    assert peek == Peek(model=ModelName("m"), stream=stream, call_words=peek.call_words)


@pytest.mark.parametrize("with_identity", [False, True])
def test_the_longest_answer_is_read(with_identity: bool) -> None:
    assert RESPONSES.peek(PATH, written(max_output_tokens=50), with_identity=with_identity).reply_max == 50


def test_what_tells_the_run_is_read_only_when_asked_for() -> None:
    peek = RESPONSES.peek(PATH, CONVERSATION, with_identity=True)
    assert (peek.tool_calls, peek.cache_key) == (IDS, "key")
    peek = RESPONSES.peek(PATH, CONVERSATION, with_identity=False)
    assert (peek.tool_calls, peek.cache_key) == ((), "")


@pytest.mark.parametrize("odd", ['"x"', "7", "null", '{"call_id": 7}', '{"call_id": {}}', '{"call_id": "\\ud800"}'])
def test_an_odd_item_is_the_engines_to_judge_and_hides_no_others(odd: str) -> None:
    items = json.dumps(json.loads(CONVERSATION)["input"]).encode()[1:]
    body = b'{"model": "m", "input": [%b, %b}' % (odd.encode(), items)

    peek = RESPONSES.peek(PATH, body, with_identity=True)
    assert (peek.model, peek.stream, peek.tool_calls) == ("m", False, IDS)


@pytest.mark.parametrize("given", [b"7", b"null", b"{}", b'"text"', b"[]"])
def test_input_that_is_no_list_echoes_nothing(given: bytes) -> None:
    body = b'{"model": "m", "input": %b}' % given
    peek = RESPONSES.peek(PATH, body, with_identity=True)
    assert (peek.model, peek.stream, peek.tool_calls) == ("m", False, ())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not valid JSON"),
        (b"{}", "`model` is missing"),
        (b'{"model": "m", "stream": 1}', "stream"),
        (b'{"model": "m", "input": "a", "input": "b"}', '"input" more than once'),
    ],
)
def test_what_cannot_be_routed_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        RESPONSES.peek(PATH, body, with_identity=True)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:model0input ', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(BadRequestError):
        assert RESPONSES.peek(PATH, body, with_identity=True).model
    with contextlib.suppress(BadRequestError):
        assert RESPONSES.translate(PATH, body).request


def test_an_engine_that_keeps_answers_may_be_asked_for_them_but_no_other() -> None:
    body = written(previous_response_id="resp_1")
    peek = RESPONSES.peek(PATH, body, with_identity=True)
    assert (peek.model, peek.stream, peek.tool_calls) == ("m", False, ())
    with pytest.raises(BadRequestError, match=r"`previous_response_id`.*send the whole conversation.*`store` false"):
        RESPONSES.translate(PATH, body)


def test_a_failure_before_the_answer_reaches_the_client_as_one() -> None:
    refused = Failure(code=FailureCode.BAD_REQUEST, message="no such thing")
    client = sdk(RESPONSES.error(refused), "application/json", 400)
    with pytest.raises(SdkBadRequestError, match="no such thing") as caught:
        client.responses.create(model="m", input="hi")
    assert caught.value.code == "bad_request"


BEGUN = translated(written(stream=True), [chunk({"content": "Hel"})]).partition(b"event: response.failed")[0]


@pytest.mark.parametrize("before", [b"", BEGUN], ids=["first", "in the middle"])
@pytest.mark.parametrize("helper", [False, True])
def test_a_failure_in_the_stream_is_raised_by_the_clients_package(before: bytes, helper: bool) -> None:
    client = sdk(before + RESPONSES.error_event(FAILURE))

    def follow() -> None:
        if helper:
            with client.responses.stream(model="m", input="hi") as stream:
                stream.until_done()
        else:
            list(client.responses.create(model="m", input="hi", stream=True))

    with pytest.raises(APIError, match="engine a: went away") as caught:
        follow()
    assert caught.value.code == "engine_failed"


def test_a_failure_in_the_stream_is_what_other_clients_read() -> None:
    name, data = RESPONSES.error_event(FAILURE).removesuffix(b"\n\n").split(b"\n")
    document = json.loads(data.removeprefix(b"data: "))

    assert name == b"event: response.failed"
    assert document["type"] == "response.failed"
    assert document["response"]["status"] == "failed"
    assert document["response"]["error"] == {"code": "engine_failed", "message": "engine a: went away"}


@pytest.mark.parametrize("helper", [False, True])
def test_a_ping_is_nothing_to_the_clients_package(helper: bool) -> None:
    whole = RESPONSES.ping * 3 + translated(written(stream=True), [chunk({"content": "Hello"}), chunk(finish="stop")])
    client = sdk(whole)
    if helper:
        with client.responses.stream(model="m", input="hi") as stream:
            assert stream.get_final_response().output_text == "Hello"
    else:
        events = list(client.responses.create(model="m", input="hi", stream=True))
        assert events[0].type == "response.created"
