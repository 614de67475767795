"""One HTTP exchange, without a socket."""

import json
from collections.abc import Sequence

import pytest
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent

from luftpause.testkit.fake_engine.classify import Classify
from luftpause.testkit.fake_engine.exchange import ClientGoneError, Exchange, RefusedError
from luftpause.testkit.fake_engine.settings import BODY_BYTES_MAX
from testkit.fake_engine.asgi import scope
from testkit.running import run


class Wire:
    """What the client sends, and what it gets."""

    def __init__(self, *parts: bytes, whole: bool = True, method: str = "POST") -> None:
        self._events: list[ASGIReceiveEvent] = [
            {"type": "http.request", "body": part, "more_body": number < len(parts) or not whole}
            for number, part in enumerate(parts, 1)
        ]
        self.sent: list[ASGISendEvent] = []
        self.exchange = Exchange(scope(method, "/"), self._receive, self._send)

    async def _receive(self) -> ASGIReceiveEvent:
        return self._events.pop(0) if self._events else {"type": "http.disconnect"}

    async def _send(self, event: ASGISendEvent) -> None:
        self.sent.append(event)

    @property
    def headers(self) -> dict[bytes, bytes]:
        [start] = [event for event in self.sent if event["type"] == "http.response.start"]
        return dict(start["headers"])

    @property
    def body(self) -> Sequence[bytes]:
        return [event["body"] for event in self.sent if event["type"] == "http.response.body"]


def test_a_body_in_parts_is_read_as_one() -> None:
    wire = Wire(b'{"model": "m", ', b'"input": "x"}')
    assert run(wire.exchange.parsed(Classify)).texts == ["x"]
    run(wire.exchange.gone())


@pytest.mark.parametrize(
    ("parts", "status"), [([b"{"], 400), ([b"[]"], 400), ([b" " * BODY_BYTES_MAX, b" "], 413), ([b"\xff"], 400)]
)
def test_what_is_no_such_body_is_refused(parts: list[bytes], status: int) -> None:
    with pytest.raises(RefusedError) as refused:
        run(Wire(*parts).exchange.parsed(Classify))
    assert refused.value.status == status
    assert json.loads(refused.value.body)["error"]["message"]


def test_a_client_that_leaves_before_its_body_is_whole_is_gone() -> None:
    with pytest.raises(ClientGoneError):
        run(Wire(b"{", whole=False).exchange.parsed(Classify))


@pytest.mark.parametrize(("status", "retry"), [(200, None), (400, None), (429, b"1"), (503, b"1")])
def test_who_is_to_come_again_is_told_when(status: int, retry: bytes | None) -> None:
    wire = Wire()
    run(wire.exchange.answer(status, b"{}"))
    assert wire.headers.get(b"retry-after") == retry
    assert wire.headers[b"content-length"] == b"2"


def test_head_gets_no_body() -> None:
    wire = Wire(method="HEAD")
    run(wire.exchange.answer(200, b"{}"))
    assert wire.body == [b""]
