import json

import pytest

from luftpause.core.dialects.engine_refusals import MESSAGE_CHARS_MAX
from luftpause.core.dialects.gemini.errors import engine_refusal, error_body, error_status


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (413, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (502, "UNAVAILABLE"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ],
)
def test_each_status_has_its_name(status: int, name: str) -> None:
    assert error_status(status) == name
    assert json.loads(error_body(status, "why")) == {"error": {"code": status, "message": "why", "status": name}}


def test_an_engines_refusal_is_told() -> None:
    body = b'{"error": {"message": "slow down", "type": "rate_limit"}}'
    assert json.loads(engine_refusal(429, body))["error"] == {
        "code": 429,
        "message": "slow down",
        "status": "RESOURCE_EXHAUSTED",
    }
    assert len(json.loads(engine_refusal(500, b"x" * 9000))["error"]["message"]) == MESSAGE_CHARS_MAX
