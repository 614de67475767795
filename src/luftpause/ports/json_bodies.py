"""Reads the small JSON that a person's page sends, for the few routes that take any: bounded, and never from a form.

A browser sends forms to strangers without asking; it asks before it sends `application/json`.
"""

from typing import Final, TypeVar

import msgspec
from starlette.requests import Request

BYTES_MAX: Final = 8192

_T = TypeVar("_T")


class NotJsonError(Exception):
    """A request's body is not what its route takes. `status` is 400, 413 or 415."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status: Final = status


async def read_json(request: Request, kind: type[_T], named: str) -> _T:
    """Return a request's body, a `named` one in what is said of a wrong one.

    Raises:
        NotJsonError: it is no JSON of this kind, or longer than BYTES_MAX.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise NotJsonError(415, "send JSON, with content-type: application/json")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > BYTES_MAX:
            raise NotJsonError(413, f"a {named} has at most {BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotJsonError(400, f"no {named}: {error}") from error
