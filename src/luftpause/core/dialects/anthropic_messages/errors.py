"""How Messages tells of a failure: `{"type": "error", "error": {"type", "message"}}`, with our or the engine's code."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.failures import Failure

MESSAGE_CHARS_MAX: Final = 2000

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
_TOO_LONG_SIGNS: Final = ("context length", "context size", "context window", "context_length")


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
    signs = f"{message} {code}".lower()
    if status in (400, 413) and not message.startswith(_TOO_LONG) and any(sign in signs for sign in _TOO_LONG_SIGNS):
        message = _TOO_LONG + message
    return _written(error_type(status), message[:MESSAGE_CHARS_MAX], code)


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
    found = _details(said.error) or _Details(message=said.message or _text(said.detail), code=said.code, type=said.type)
    code = found.code if isinstance(found.code, str) else found.type
    return engine_error(status, found.message or f"the engine answered with status {status}", code or "")


_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)
_NULL: Final = Raw(b"null")


class _Details(Struct):
    message: str | None = None
    code: object = None
    type: str | None = None


class _Refusal(Struct):
    error: Raw = _NULL
    message: str | None = None
    detail: Raw = _NULL
    code: object = None
    type: str | None = None


def _details(error: Raw) -> _Details | None:
    try:
        said = msgspec.json.decode(error, type=_Details | str | None)
    except _UNREADABLE:
        return _Details(message=_text(error))
    return _Details(message=said) if isinstance(said, str) else said


def _text(raw: Raw) -> str:
    """Return a value that is a text, or any other as it is written."""
    if raw == _NULL:
        return ""
    try:
        return msgspec.json.decode(raw, type=str)
    except _UNREADABLE:
        return bytes(raw).decode("utf-8", "replace")


def _written(kind: str, message: str, code: str) -> bytes:
    error = {"type": kind, "message": message}
    if code and code != kind:
        error["code"] = code
    return msgspec.json.encode({"type": "error", "error": error})
