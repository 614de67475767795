import json

import pytest

from luftpause.core.dialects.failures import Failure, FailureCode, openai_error, refused
from luftpause.core.model.refusals import Refusal, RefusalReason


@pytest.mark.parametrize("code", FailureCode)
def test_every_failure_has_a_status_and_an_openai_shape(code: FailureCode) -> None:
    failure = Failure(code=code, message='says "no"\n')

    assert 400 <= failure.status < 600
    error = json.loads(openai_error(failure))
    assert error == {"error": {"message": 'says "no"\n', "type": error["error"]["type"], "code": code.value}}
    assert error["error"]["type"].endswith("_error")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (FailureCode.BAD_REQUEST, "invalid_request_error"),
        (FailureCode.UNAUTHORIZED, "authentication_error"),
        (FailureCode.ENGINE_FAILED, "engine_error"),
        (FailureCode.SCHEDULER_FAULT, "server_error"),
    ],
)
def test_the_type_tells_whose_fault_it_is(code: FailureCode, kind: str) -> None:
    assert json.loads(openai_error(Failure(code=code, message="")))["error"]["type"] == kind


@pytest.mark.parametrize("reason", RefusalReason)
def test_every_refusal_becomes_a_failure(reason: RefusalReason) -> None:
    failure = refused(Refusal(reason=reason, message="why"))

    assert failure.code.value == reason.value
    assert failure.message == "why"
    expected = {
        RefusalReason.UNKNOWN_MODEL: 404,
        RefusalReason.MODEL_NEEDED: 400,
        RefusalReason.UNKNOWN_RUN: 404,
        RefusalReason.RUN_ENDED: 409,
        RefusalReason.LOAD_FAILED: 502,
    }
    assert failure.status == expected.get(reason, 503)
