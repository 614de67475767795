import json

import pytest

from luftpause.core.dialects.anthropic_messages.errors import (
    engine_error,
    engine_refusal,
    error_body,
    error_event,
    error_type,
)
from luftpause.core.dialects.engine_refusals import MESSAGE_CHARS_MAX
from luftpause.core.dialects.failures import Failure, FailureCode


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "invalid_request_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_each_status_has_its_type(status: int, kind: str) -> None:
    assert error_type(status) == kind


@pytest.mark.parametrize("code", list(FailureCode))
def test_every_failure_keeps_its_code(code: FailureCode) -> None:
    failure = Failure(code=code, message="why")

    error = {"type": error_type(failure.status), "message": "why", "code": code.value}
    assert json.loads(error_body(failure)) == {"type": "error", "error": error}


def test_an_error_event_is_one_event() -> None:
    assert error_event(b"{}") == b"event: error\ndata: {}\n\n"


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error": {"message": "no", "type": "bad", "code": "c"}}', "no", "c"),
        (b'{"error": {"message": "no", "type": "bad", "code": 400}}', "no", "bad"),
        (b'{"error": {"message": "no", "type": "invalid_request_error", "code": null}}', "no", None),
        (b'{"error": "no"}', "no", None),
        (b'{"error": [1]}', "[1]", None),
        (b'{"object": "error", "message": "no", "type": "bad", "code": 400}', "no", "bad"),
        (b'{"detail": "no"}', "no", None),
        (b'{"detail": [{"loc": ["body"]}]}', '[{"loc": ["body"]}]', None),
        (b"  plain \xff text\n", "plain � text", None),
        (b"[]", "[]", None),
        (b"", "the engine answered with status 400", None),
        (b"{}", "the engine answered with status 400", None),
        (b"x" * 9_000, "x" * MESSAGE_CHARS_MAX, None),
    ],
)
def test_an_engines_refusal_is_told_whatever_its_shape(body: bytes, message: str, code: str | None) -> None:
    error = {"type": "invalid_request_error", "message": message, **({"code": code} if code else {})}

    assert json.loads(engine_refusal(400, body)) == {"type": "error", "error": error}


@pytest.mark.parametrize(
    "said",
    [
        "request (20031 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "This model's maximum context length is 4096 tokens.",
        "The input (9 tokens) is longer than the model's context length (8 tokens).",
    ],
)
def test_a_conversation_that_is_too_long_is_told_as_clients_know_it(said: str) -> None:
    assert json.loads(engine_error(400, said))["error"]["message"] == f"prompt is too long: {said}"
    assert json.loads(engine_error(500, said))["error"]["message"] == said


def test_it_is_told_by_its_code_too_and_only_once() -> None:
    assert b"prompt is too long: no" in engine_error(400, "no", "context_length_exceeded")
    assert engine_error(400, "prompt is too long: context length").count(b"too long") == 1
