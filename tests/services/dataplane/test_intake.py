from collections.abc import Iterator

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.core.dialects.failures import FailureCode
from luftpause.ports.asgi import Message, Receive
from luftpause.services.dataplane.intake import ClientLeftError, IntakeError, check_media_type, read_body
from luftpause.services.dataplane.settings import DataplaneSettings

SMALL = DataplaneSettings(max_body_bytes=10)


def receiving(*messages: Message) -> Receive:
    coming: Iterator[Message] = iter(messages)

    async def receive() -> Message:
        return next(coming)

    return receive


def piece(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def test_pieces_are_joined_up_to_the_limit() -> None:
    receive = receiving(piece(b"12345"), piece(b""), piece(b"67890", more=False))

    assert run_bounded(read_body({}, receive, SMALL)) == b"1234567890"


@pytest.mark.parametrize(
    ("headers", "messages"),
    [({b"content-length": b"11"}, []), ({}, [piece(b"12345678901", more=False)]), ({}, [piece(b"123456")] * 2)],
)
def test_a_body_past_the_limit_is_refused_without_reading_on(
    headers: dict[bytes, bytes], messages: list[Message]
) -> None:
    with pytest.raises(IntakeError) as refused:
        run_bounded(read_body(headers, receiving(*messages), SMALL))

    assert refused.value.failure.code is FailureCode.BODY_TOO_LARGE


def test_a_client_that_left_has_no_body() -> None:
    with pytest.raises(ClientLeftError):
        run_bounded(read_body({}, receiving(piece(b"1"), {"type": "http.disconnect"}), SMALL))


def test_the_media_type_that_came_is_named() -> None:
    check_media_type({b"content-type": b"application/json"})
    with pytest.raises(IntakeError, match="it is 'text/x'"):
        check_media_type({b"content-type": b"text/x"})
