import json

import pytest
from openai import APIStatusError

from core.dialects.openai_responses.exchanges import (
    GOLDEN,
    PATH,
    RESPONSES,
    Object,
    answered,
    response_of,
    sdk,
    written,
)
from luftpause.core.dialects.engine_refusals import MESSAGE_CHARS_MAX
from luftpause.core.dialects.openai_responses.errors import TOO_LONG, engine_refusal

TRANSLATION = RESPONSES.translate(PATH, written())


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"error": {"message": "m", "type": "t", "param": "p", "code": "c"}}, ("m", "t", "p", "c")),
        (429, {"error": {"message": "m", "code": 429}}, ("m", "rate_limit_error", None, None)),
        (500, {"error": "m"}, ("m", "server_error", None, None)),
        (500, {"error": [1]}, ("[1]", "server_error", None, None)),
        (400, {"object": "error", "message": "m", "type": "t", "code": 400, "param": None}, ("m", "t", None, None)),
        (422, {"detail": [{"loc": 1}]}, ('[{"loc": 1}]', "invalid_request_error", None, None)),
        (404, {"detail": "m"}, ("m", "not_found_error", None, None)),
        (400, {"error": {"message": "context length"}}, ("context length", "invalid_request_error", None, TOO_LONG)),
        (500, {"error": {"message": "context size"}}, ("context size", "server_error", None, None)),
    ],
)  # fmt: skip
def test_refusals_in_every_shape(status: int, body: Object, expected: tuple[object, ...]) -> None:
    error = json.loads(TRANSLATION.error(status, json.dumps(body).encode()))["error"]
    assert tuple(error[key] for key in ("message", "type", "param", "code")) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the engine answered with status 502"),
        (b" Bad \xff", "Bad \ufffd"),
        (b"[" * 10_000, "[" * MESSAGE_CHARS_MAX),
    ],
)
def test_refusals_that_are_no_json(body: bytes, message: str) -> None:
    assert json.loads(engine_refusal(502, body))["error"]["message"] == message


def test_a_real_engines_refusal_is_what_the_clients_package_raises() -> None:
    body = TRANSLATION.error(400, (GOLDEN / "llama_too_long.refusal.json").read_bytes())
    with pytest.raises(APIStatusError, match="exceeds the available context size") as caught:
        sdk(body, "application/json", 400).responses.create(model="m", input="hi")
    assert (caught.value.code, caught.value.type) == (TOO_LONG, "exceed_context_size_error")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "out of memory", "code": 500}, "server_error"),
        ({"message": "slow down", "code": 429}, "rate_limit_exceeded"),
        ({"message": "the request exceeds the available context size"}, TOO_LONG),
    ],
)
def test_an_error_in_the_middle_fails_the_response(error: Object, code: str) -> None:
    events = answered(b"data: %b\n\n" % json.dumps({"error": error}).encode())
    response = response_of(events)
    assert response["error"] == events[-1]["error"] == {"code": code, "message": error["message"]}
    assert response["status"] == "failed"
