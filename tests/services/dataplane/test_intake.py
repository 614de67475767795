import asyncio
from collections.abc import Sequence

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.core.dialects.failures import FailureCode
from luftpause.ports.asgi import Answering, BodyTooLongError, ClientLeftError
from luftpause.ports.engines import Header
from luftpause.services.dataplane.intake import IntakeError, body_here, check_encoding, check_media_type, read_body
from luftpause.services.dataplane.settings import DataplaneSettings

SMALL = DataplaneSettings(max_body_bytes=10)


class LyingLine:
    """A line whose body never ends, or is what the test says."""

    def __init__(self, body: bytes | Exception | None = None) -> None:
        self.left = False
        self._body = body

    def body_here(self, limit: int) -> bytes | None:
        if isinstance(self._body, Exception):
            raise self._body
        return self._body

    async def body(self, limit: int) -> bytes:
        if self._body is None:
            await asyncio.Event().wait()
            raise AssertionError("nothing ends this wait but its cancellation")
        if isinstance(self._body, Exception):
            raise self._body
        return self._body

    def on_leave(self, told: Answering | None) -> None:
        raise AssertionError("the intake needs no notice")

    def begin(self, status: int, headers: Sequence[Header]) -> None:
        raise AssertionError("the intake answers nothing")

    def write(self, data: bytes) -> bool:
        raise AssertionError("the intake answers nothing")

    def end(self, data: bytes) -> None:
        raise AssertionError("the intake answers nothing")

    async def room(self) -> None:
        raise AssertionError("the intake answers nothing")

    def cut(self) -> None:
        raise AssertionError("the intake answers nothing")


def test_a_body_that_is_here_is_returned() -> None:
    assert body_here(LyingLine(b"1234567890"), SMALL) == b"1234567890"
    assert body_here(LyingLine(), SMALL) is None
    assert run_bounded(read_body({b"content-length": b"10"}, LyingLine(b"1234567890"), SMALL)) == b"1234567890"


@pytest.mark.parametrize(
    ("headers", "line"), [({b"content-length": b"11"}, LyingLine()), ({}, LyingLine(BodyTooLongError()))]
)
def test_a_body_past_the_limit_is_refused_without_reading_on(headers: dict[bytes, bytes], line: LyingLine) -> None:
    with pytest.raises(IntakeError) as refused:
        run_bounded(read_body(headers, line, SMALL))

    assert refused.value.failure.code is FailureCode.BODY_TOO_LARGE


def test_a_body_that_is_here_and_too_long_is_refused() -> None:
    with pytest.raises(IntakeError) as refused:
        body_here(LyingLine(BodyTooLongError()), SMALL)
    assert refused.value.failure.code is FailureCode.BODY_TOO_LARGE


def test_a_body_that_takes_too_long_is_refused() -> None:
    with pytest.raises(IntakeError) as refused:
        run_bounded(read_body({}, LyingLine(), DataplaneSettings(body_timeout_s=0.01)))

    assert refused.value.failure.code is FailureCode.BODY_TIMEOUT


def test_a_client_that_left_has_no_body() -> None:
    with pytest.raises(ClientLeftError):
        run_bounded(read_body({}, LyingLine(ClientLeftError()), SMALL))


def test_the_media_type_that_came_is_named() -> None:
    check_media_type({b"content-type": b"application/json"})
    with pytest.raises(IntakeError, match="it is 'text/x'"):
        check_media_type({b"content-type": b"text/x"})


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"zstd", b"deflate", b"gzip, identity", b"\xff"])
def test_a_compressed_body_is_refused_and_the_way_out_told(encoding: bytes) -> None:
    with pytest.raises(IntakeError) as refused:
        check_encoding({b"content-encoding": encoding})
    assert refused.value.failure.code is FailureCode.UNSUPPORTED_MEDIA_TYPE
    assert repr(encoding.decode("ascii", "backslashreplace")) in refused.value.failure.message
    assert "without compression" in refused.value.failure.message


@pytest.mark.parametrize("headers", [{}, {b"content-encoding": b"identity"}, {b"content-encoding": b" Identity "}])
def test_a_plain_body_may_say_that_it_is_one(headers: dict[bytes, bytes]) -> None:
    check_encoding(headers)
