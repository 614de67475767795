"""Reads an engine's refusal, in whatever shape it came: OpenAI's, a web framework's `detail`, or plain text."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

MESSAGE_CHARS_MAX: Final = 2000
LOCATION_CHARS_MAX: Final = 300

_UNSEEN_SIGNS: Final = (
    "image input is not supported",
    "audio input is not supported",
    "video input is not supported",
    "does not support image",
    "does not support audio",
    "required for image input",
    "not a multimodal model",
)
"""How engines say that their model takes texts only: some with a status that calls it a fault of theirs."""
TOO_LONG_STATUSES: Final = (400, 413)
_TOO_LONG_SIGNS: Final = ("context length", "context size", "context window", "context_length")


class EngineRefusal(Struct, frozen=True, kw_only=True):
    """What an engine said when it refused.

    Attributes:
        message: at most MESSAGE_CHARS_MAX characters; never empty.
        code: the engine's own code, None without one that is a text.
        type: the engine's own kind of error.
        param: what the engine names as being at fault.
    """

    message: str
    code: str | None = None
    type: str | None = None
    param: object = None


def read_refusal(status: int, body: bytes) -> EngineRefusal:
    """Return what the body of a refusal says; `status` is its HTTP status."""
    try:
        said = msgspec.json.decode(body, type=_Body)
    except _UNREADABLE:
        said = _Body(message="" if body.translate(None, _CONTROLS) != body else body.decode("utf-8", "replace").strip())
    found = _details(said.error)
    if found is None:
        found = _Details(message=said.message or _text(said.detail), code=said.code, type=said.type, param=said.param)
    return EngineRefusal(
        message=(found.message or f"the engine answered with status {status}")[:MESSAGE_CHARS_MAX],
        code=found.code if isinstance(found.code, str) else None,
        type=found.type,
        param=found.param,
    )


def redirected(status: int, location: bytes) -> str:
    """Return the sentence for an engine that sends us elsewhere; of the address, what may hold a secret is left out."""
    address = location.decode("latin-1").partition("?")[0].partition("#")[0]
    host_at = address.find("//") + 2 if "//" in address else 0
    host, slash, path = address[host_at:].partition("/")
    shown = ascii(address[:host_at] + host.rpartition("@")[2] + slash + path)[1:-1][:LOCATION_CHARS_MAX]
    return f"it redirects to {shown or 'nowhere'} (status {status}), which is not followed: correct the replica's url"


def is_too_long(message: str, code: str = "") -> bool:
    """Say whether a refusal means that the conversation no longer fits into the model's context."""
    signs = f"{message} {code}".lower()
    return any(sign in signs for sign in _TOO_LONG_SIGNS)


def tells_too_long(status: int, refusal: EngineRefusal) -> bool:
    """Say whether a refusal of this status means that the conversation no longer fits into the model's context."""
    return status in TOO_LONG_STATUSES and is_too_long(refusal.message, f"{refusal.code} {refusal.type}")


def is_unseen(message: str) -> bool:
    """Say whether a refusal means that the model cannot see or hear what the conversation holds."""
    said = message.lower()
    return any(sign in said for sign in _UNSEEN_SIGNS)


_CONTROLS: Final = bytes({*range(32)} - {*b"\t\n\r"})
"""No text holds them: it is compressed, for one."""
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)
_NULL: Final = Raw(b"null")


class _Details(Struct):
    message: str | None = None
    code: object = None
    type: str | None = None
    param: object = None


class _Body(Struct):
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
