"""How Gemini tells of a failure: `{"error": {"code", "message", "status"}}`, with the HTTP status as the code."""

from typing import Final

import msgspec

from luftpause.core.dialects.engine_refusals import MESSAGE_CHARS_MAX, read_refusal

_STATUSES: Final = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def error_status(status: int) -> str:
    """Return what this dialect calls a failure with this HTTP status."""
    return _STATUSES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")


def error_body(status: int, message: str) -> bytes:
    """Return the body of an answer that tells of a failure."""
    error = {"code": status, "message": message[:MESSAGE_CHARS_MAX], "status": error_status(status)}
    return msgspec.json.encode({"error": error})


def engine_refusal(status: int, body: bytes) -> bytes:
    """Return an engine's refusal, in whatever shape it came, as an error body; `status` is its HTTP status."""
    return error_body(status, read_refusal(status, body).message)
