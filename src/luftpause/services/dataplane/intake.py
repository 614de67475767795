"""Takes a request's body in: bounded in size and time."""

import asyncio

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.ports.asgi import BodyTooLongError, Line
from luftpause.services.dataplane.settings import DataplaneSettings


class IntakeError(Exception):
    """The request cannot be taken. `failure` is for the client."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


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


def check_encoding(headers: dict[bytes, bytes]) -> None:
    """Refuse a body that is compressed: no client was seen to send one here, and a small one can become any size.

    Raises:
        IntakeError: 415, naming what came and what to do.
    """
    value = headers.get(b"content-encoding")
    if value is None or value.strip().lower() in (b"", b"identity"):
        return
    came = repr(value.decode("ascii", "backslashreplace")[:100])
    message = (
        f"content-encoding is {came}: send the body as it is, without compression "
        "(Codex: `enable_request_compression = false` under [features] in its config.toml)"
    )
    raise IntakeError(Failure(code=FailureCode.UNSUPPORTED_MEDIA_TYPE, message=message))


def body_here(line: Line, settings: DataplaneSettings) -> bytes | None:
    """Return the whole body, None if it is still under way: then `read_body` waits for it.

    Raises:
        IntakeError: 413 when it is too long.
        ClientLeftError: the client left.
    """
    try:
        return line.body_here(settings.max_body_bytes)
    except BodyTooLongError as error:
        raise IntakeError(_too_large(settings.max_body_bytes)) from error


async def read_body(headers: dict[bytes, bytes], line: Line, settings: DataplaneSettings) -> bytes:
    """Return the whole body once it is there.

    Raises:
        IntakeError: 413 when it is too long, at once if its length is announced; 408 when it takes too long.
        ClientLeftError: the client left.
    """
    limit = settings.max_body_bytes
    try:
        announced = headers.get(b"content-length")
        if announced is not None and int(announced) > limit:
            raise IntakeError(_too_large(limit))
        async with asyncio.timeout(settings.body_timeout_s):
            return await line.body(limit)
    except BodyTooLongError as error:
        raise IntakeError(_too_large(limit)) from error
    except TimeoutError as error:
        message = f"the request body did not arrive within {settings.body_timeout_s:g} s"
        raise IntakeError(Failure(code=FailureCode.BODY_TIMEOUT, message=message)) from error


def _too_large(limit: int) -> Failure:
    return Failure(code=FailureCode.BODY_TOO_LARGE, message=f"the request body exceeds {limit:,} bytes")
