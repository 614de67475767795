"""How Responses tells of a failure: as the body of a refusal, and as the last event of a stream.

A stream fails with `response.failed`. Beside the response it has the error once more at its top, which is where the
OpenAI packages look for what they raise, whatever came before it; other clients read the one in the response.
"""

from typing import Final

import msgspec

from luftpause.core.dialects.engine_refusals import MESSAGE_CHARS_MAX, is_too_long, read_refusal, tells_too_long
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.openai_responses.response import response_object, written_event

TOO_LONG: Final = "context_length_exceeded"
"""The code by which clients know that they have to shorten the conversation."""

_TYPES: Final = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def failure_event(failure: Failure) -> bytes:
    """Return the event that ends a stream of which we know nothing: neither its response nor its numbers."""
    error = response_error(failure.message, failure.code.value)
    response = response_object({}, id="resp_failed", status="failed", error=error)
    return failed_event(0, response)


def failed_event(number: int, response: dict[str, object]) -> bytes:
    """Return the event that ends a stream with a response that failed."""
    return written_event("response.failed", number, {"response": response, "error": response["error"]})


def response_error(message: str, code: str = "", status: int = 0) -> dict[str, object]:
    """Return why a response failed: `{"code", "message"}`. The status is the engine's, 0 where it gave none."""
    if is_too_long(message, code):
        code = TOO_LONG
    elif not code:
        code = "rate_limit_exceeded" if status == 429 else "server_error"
    return {"code": code, "message": message[:MESSAGE_CHARS_MAX]}


def engine_refusal(status: int, body: bytes) -> bytes:
    """Return an engine's refusal, in whatever shape it came, as an error body.

    Args:
        status: the HTTP status of the refusal.
        body: what it says.
    """
    refusal = read_refusal(status, body)
    code = refusal.code
    if tells_too_long(status, refusal):
        code = TOO_LONG
    kind = refusal.type or _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": refusal.message, "type": kind, "param": refusal.param, "code": code}
    return msgspec.json.encode({"error": error})


def reworded(status: int, body: bytes) -> bytes:
    """Return the refusal of an engine that speaks this dialect, where clients wait for another code; else nothing."""
    refusal = read_refusal(status, body)
    return engine_refusal(status, body) if refusal.code != TOO_LONG and tells_too_long(status, refusal) else b""
