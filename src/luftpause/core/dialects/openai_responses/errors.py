"""How Responses tells of a failure: as the body of a refusal, and as the last event of a stream.

A stream fails with `response.failed`. Beside the response it has the error once more at its top, which is where the
OpenAI packages look for what they raise, whatever came before it; other clients read the one in the response.
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.openai_responses.response import response_object, written_event

MESSAGE_CHARS_MAX: Final = 2000
TOO_LONG: Final = "context_length_exceeded"
"""The code by which clients know that they have to shorten the conversation."""

_TOO_LONG_SIGNS: Final = ("context length", "context size", "context window", "context_length")
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
    if _is_too_long(message, code):
        code = TOO_LONG
    elif not code:
        code = "rate_limit_exceeded" if status == 429 else "server_error"
    return {"code": code, "message": message[:MESSAGE_CHARS_MAX]}


def engine_refusal(status: int, body: bytes) -> bytes:
    """Return an engine's refusal, in whatever shape it came, as an error body.

    Args:
        status: the HTTP status of the refusal.
        body: OpenAI's shape, a web framework's `detail`, or plain text.
    """
    try:
        said = msgspec.json.decode(body, type=_Refusal)
    except _UNREADABLE:
        said = _Refusal(message=body.decode("utf-8", "replace").strip())
    found = _details(said.error)
    if found is None:
        found = _Details(message=said.message or _text(said.detail), code=said.code, type=said.type, param=said.param)
    message = (found.message or f"the engine answered with status {status}")[:MESSAGE_CHARS_MAX]
    code = found.code if isinstance(found.code, str) else None
    if status in (400, 413) and _is_too_long(message, f"{code} {found.type}"):
        code = TOO_LONG
    kind = found.type or _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": message, "type": kind, "param": found.param, "code": code}
    return msgspec.json.encode({"error": error})


_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)
_NULL: Final = Raw(b"null")


class _Details(Struct):
    message: str | None = None
    code: object = None
    type: str | None = None
    param: object = None


class _Refusal(Struct):
    error: Raw = _NULL
    message: str | None = None
    detail: Raw = _NULL
    code: object = None
    type: str | None = None
    param: object = None


def _details(error: Raw) -> _Details | None:
    try:
        said = msgspec.json.decode(error, type=_Details | str | None)
    except _UNREADABLE:
        return _Details(message=_text(error))
    return _Details(message=said) if isinstance(said, str) else said


def _text(raw: Raw) -> str:
    """Return a value that is a text, or any other as it is written; none for null."""
    if raw == _NULL:
        return ""
    try:
        return msgspec.json.decode(raw, type=str)
    except _UNREADABLE:
        return bytes(raw).decode("utf-8", "replace")


def _is_too_long(message: str, code: str) -> bool:
    signs = f"{message} {code}".lower()
    return any(sign in signs for sign in _TOO_LONG_SIGNS)
