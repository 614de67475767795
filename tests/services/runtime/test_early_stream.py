import asyncio

import pytest

from luftpause.ports.asgi import Message, Send
from luftpause.services.runtime.early_stream import EarlyStream
from testkit.virtual_time import let_pass, run_virtual

JSON = (b"content-type", b"application/json")
STREAM = (b"content-type", b"text/event-stream")
HELLO = b'{"id": 1}'


def start(status: int, kind: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": [kind]}


def body(piece: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": piece, "more_body": more}


def answered(after_s: float, *messages: Message) -> tuple[list[tuple[int, bytes]], bytes, float]:
    """Heads, body, and when the first head was there, of an answer that takes so long to begin."""
    heads: list[tuple[int, bytes]] = []
    times: list[float] = []
    bodies: list[bytes] = []

    async def sent(message: Message) -> None:
        await asyncio.sleep(0)
        if message["type"] == "http.response.start":
            heads.append((message["status"], dict(message["headers"])[b"content-type"]))
            times.append(asyncio.get_running_loop().time())
        else:
            bodies.append(message["body"])

    async def answer(send: Send) -> None:
        await let_pass(after_s)
        for message in messages:
            await send(message)

    run_virtual(EarlyStream(sent, after_s=0.5).around(answer))
    return heads, b"".join(bodies), times[0]


@pytest.mark.parametrize("kind", [JSON, STREAM])
def test_an_answer_that_is_there_soon_comes_as_it_is(kind: tuple[bytes, bytes]) -> None:
    heads, said, _ = answered(0.4, start(404, kind), body(HELLO))
    assert (heads, said) == ([(404, kind[1])], HELLO)


def test_a_late_answer_is_an_event_of_a_stream_that_was_opened_early() -> None:
    heads, said, at = answered(60.0, start(404, JSON), body(b'{"id":\n', more=True), body(b"1}"))
    assert (heads, at) == ([(200, STREAM[1])], 0.5)
    assert said == b': waiting\r\n\r\nevent: message\r\ndata: {"id": 1}\r\n\r\n'


def test_a_stream_that_begins_late_goes_on_in_the_one_that_is_open() -> None:
    heads, said, at = answered(15.0, start(200, STREAM), body(b": ping\r\n\r\n", more=True), body(b"data: {}\r\n\r\n"))
    assert (heads, at) == ([(200, STREAM[1])], 0.5)
    assert said == b": waiting\r\n\r\n: ping\r\n\r\ndata: {}\r\n\r\n"


def test_whoever_leaves_meanwhile_is_sent_nothing_more() -> None:
    told: list[Message] = []

    async def sent(message: Message) -> None:
        told.append(message)

    async def answer(_send: Send) -> None:
        await let_pass(0.4)

    async def live() -> None:
        await EarlyStream(sent, after_s=0.5).around(answer)
        await let_pass(5)

    run_virtual(live())
    assert told == []
