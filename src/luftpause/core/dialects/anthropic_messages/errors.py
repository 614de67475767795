"""How Messages tells of a failure: `{"type": "error", "error": {"type", "message"}}`, with our or the engine's code."""

from typing import Final

import msgspec

from luftpause.core.dialects.engine_refusals import (
    MESSAGE_CHARS_MAX,
    TOO_LONG_STATUSES,
    is_too_long,
    read_refusal,
    tells_too_long,
)
from luftpause.core.dialects.failures import Failure

_TYPES: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_TOO_LONG: Final = "prompt is too long: "


def error_type(status: int) -> str:
    """Return what this dialect calls a failure with this status."""
    return _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")


def error_body(failure: Failure) -> bytes:
    """Return the body of an answer that tells of a failure."""
    return _written(error_type(failure.status), failure.message, failure.code.value)


def error_event(body: bytes) -> bytes:
    """Return an error body as an event of a stream."""
    return b"event: error\ndata: " + body + b"\n\n"


def engine_error(status: int, message: str, code: str = "") -> bytes:
    """Return an engine's failure as an error body.

    A conversation that no longer fits is told in the words by which clients know that they have to shorten it.
    """
    if status in TOO_LONG_STATUSES and not message.startswith(_TOO_LONG) and is_too_long(message, code):
        message = _TOO_LONG + message
    return _written(error_type(status), message[:MESSAGE_CHARS_MAX], code)


def engine_refusal(status: int, body: bytes) -> bytes:
    """Return an engine's refusal, in whatever shape it came, as an error body.

    Args:
        status: the HTTP status of the refusal.
        body: what it says.
    """
    refusal = read_refusal(status, body)
    return engine_error(status, refusal.message, refusal.code or refusal.type or "")


def reworded(status: int, body: bytes) -> bytes:
    """Return the refusal of an engine that speaks this dialect, where clients wait for other words; else nothing."""
    refusal = read_refusal(status, body)
    is_told = refusal.message.startswith(_TOO_LONG)
    return engine_refusal(status, body) if not is_told and tells_too_long(status, refusal) else b""


def _written(kind: str, message: str, code: str) -> bytes:
    error = {"type": kind, "message": message}
    if code and code != kind:
        error["code"] = code
    return msgspec.json.encode({"type": "error", "error": error})
