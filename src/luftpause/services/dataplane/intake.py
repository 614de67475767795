"""Takes a request's body in: bounded in size and time."""

import asyncio

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.ports.asgi import Receive
from luftpause.services.dataplane.settings import DataplaneSettings


class IntakeError(Exception):
    """The request cannot be taken. `failure` is for the client."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ClientLeftError(Exception):
    """The client left before its request was whole: nobody is there to be answered."""


def check_media_type(headers: dict[bytes, bytes]) -> None:
    """Refuse a body that does not call itself JSON: a web page could send it without asking.

    Raises:
        IntakeError: 415, naming what came.
    """
    value = headers.get(b"content-type", b"")
    if value == b"application/json":
        return
    media_type = value.partition(b";")[0].strip().lower()
    if media_type == b"application/json" or (media_type.startswith(b"application/") and media_type.endswith(b"+json")):
        return
    came = repr(value.decode("ascii", "backslashreplace")[:100]) if value else "missing"
    raise IntakeError(
        Failure(code=FailureCode.UNSUPPORTED_MEDIA_TYPE, message=f"content-type must be application/json, it is {came}")
    )


async def read_body(headers: dict[bytes, bytes], receive: Receive, settings: DataplaneSettings) -> bytes:
    """Return the whole body.

    Raises:
        IntakeError: 413 when it is too long, at once if its length is announced; 408 when it takes too long.
        ClientLeftError: the client left.
    """
    limit = settings.max_body_bytes
    announced = headers.get(b"content-length")
    if announced is not None and int(announced) > limit:
        raise IntakeError(_too_large(limit))
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            return await _pieces(receive, limit)
    except TimeoutError as error:
        message = f"the request body did not arrive within {settings.body_timeout_s:g} s"
        raise IntakeError(Failure(code=FailureCode.BODY_TIMEOUT, message=message)) from error


async def _pieces(receive: Receive, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeftError
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise IntakeError(_too_large(limit))
        pieces.append(piece)
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _too_large(limit: int) -> Failure:
    return Failure(code=FailureCode.BODY_TOO_LARGE, message=f"the request body exceeds {limit:,} bytes")
