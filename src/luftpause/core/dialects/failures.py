"""Every failure that a client can be told of, and how each dialect writes it.

One typed value, one place that renders it: nobody builds an error body by hand. It knows nothing of when a failure
happens.
"""

from dataclasses import dataclass
from enum import Enum

import msgspec

from luftpause.core.model.refusals import Refusal


class FailureCode(Enum):
    """Each value is the `code` that a client sees. Every `RefusalReason` has its equal here."""

    BAD_HTTP = "bad_http"
    BAD_REQUEST = "bad_request"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN_ORIGIN = "forbidden_origin"
    FORBIDDEN_CLASS = "forbidden_class"
    NOT_FOUND = "not_found"
    UNKNOWN_MODEL = "unknown_model"
    MODEL_NEEDED = "model_needed"
    UNKNOWN_RUN = "unknown_run"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BODY_TIMEOUT = "body_timeout"
    RUN_ENDED = "run_ended"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    UNKNOWN_HOST = "unknown_host"
    NO_WEBSOCKET = "no_websocket"
    HEADERS_TOO_LARGE = "headers_too_large"
    INTERNAL = "internal"
    ENGINE_FAILED = "engine_failed"
    SCHEDULER_AWAY = "scheduler_away"
    SCHEDULER_FAULT = "scheduler_fault"
    TOO_MANY_READERS = "too_many_readers"
    SHUTTING_DOWN = "shutting_down"
    EXPIRED = "expired"
    LOAD_FAILED = "model_load_failed"
    MODEL_FAILING = "model_failing"
    INSUFFICIENT_MEMORY = "insufficient_memory"
    MODEL_UNLOADED = "model_unloaded"


_STATUS = {
    FailureCode.BAD_HTTP: 400,
    FailureCode.BAD_REQUEST: 400,
    FailureCode.MODEL_NEEDED: 400,
    FailureCode.UNAUTHORIZED: 401,
    FailureCode.FORBIDDEN_ORIGIN: 403,
    FailureCode.FORBIDDEN_CLASS: 403,
    FailureCode.NOT_FOUND: 404,
    FailureCode.UNKNOWN_MODEL: 404,
    FailureCode.UNKNOWN_RUN: 404,
    FailureCode.METHOD_NOT_ALLOWED: 405,
    FailureCode.BODY_TIMEOUT: 408,
    FailureCode.RUN_ENDED: 409,
    FailureCode.BODY_TOO_LARGE: 413,
    FailureCode.UNSUPPORTED_MEDIA_TYPE: 415,
    FailureCode.UNKNOWN_HOST: 421,
    FailureCode.NO_WEBSOCKET: 426,
    FailureCode.HEADERS_TOO_LARGE: 431,
    FailureCode.INTERNAL: 500,
    FailureCode.ENGINE_FAILED: 502,
    FailureCode.SCHEDULER_AWAY: 503,
    FailureCode.SCHEDULER_FAULT: 503,
    FailureCode.TOO_MANY_READERS: 503,
    FailureCode.SHUTTING_DOWN: 503,
    FailureCode.EXPIRED: 503,
    FailureCode.LOAD_FAILED: 502,
    FailureCode.MODEL_FAILING: 503,
    FailureCode.INSUFFICIENT_MEMORY: 503,
    FailureCode.MODEL_UNLOADED: 503,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure and its sentence for the client.

    `retry_after_s`: when it makes sense to ask again, seconds; None where nobody knows.
    """

    code: FailureCode
    message: str
    retry_after_s: float | None = None

    @property
    def status(self) -> int:
        """The HTTP status it is sent with."""
        return _STATUS[self.code]


def refused(refusal: Refusal) -> Failure:
    """Return the failure that tells a client of the scheduler's refusal."""
    code = FailureCode(refusal.reason.value)
    return Failure(code=code, message=refusal.message, retry_after_s=refusal.retry_after_s)


def openai_error(failure: Failure) -> bytes:
    """Return the failure as a Chat Completions error body: `{"error": {"message", "type", "code"}}`."""
    error = {"message": failure.message, "type": _openai_type(failure), "code": failure.code.value}
    return msgspec.json.encode({"error": error})


def _openai_type(failure: Failure) -> str:
    if failure.code is FailureCode.UNAUTHORIZED:
        return "authentication_error"
    if failure.status == 403:
        return "permission_error"
    if failure.code is FailureCode.ENGINE_FAILED:
        return "engine_error"
    return "invalid_request_error" if failure.status < 500 else "server_error"
