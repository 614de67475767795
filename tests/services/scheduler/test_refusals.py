"""Refusals of the scheduler's HTTP routes."""

import json

import pytest

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.services.scheduler.refusals import refusal


@pytest.mark.parametrize(("seconds", "told"), [(None, None), (0.0, "1"), (1.2, "2")])
def test_a_refusal_says_why_and_when_to_ask_again(seconds: float | None, told: str | None) -> None:
    answer = refusal(Failure(code=FailureCode.TOO_MANY_READERS, message="later", retry_after_s=seconds))
    assert answer.status_code == 503
    assert answer.headers.get("retry-after") == told
    assert json.loads(bytes(answer.body))["error"]["message"] == "later"
