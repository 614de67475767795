import asyncio

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from adapters.http_server.test_server import serving
from adapters.raw_client import connected, request
from luftpause.adapters.door_guard.cross_origin import (
    ASKED_BYTES_MAX,
    METHODS,
    answer_preflight,
    is_preflight,
    let_read,
)
from luftpause.adapters.door_guard.guard import DoorGuard
from luftpause.ports.asgi import LINE_EXTENSION, Application, Line, Message, Receive, Scope, Send

ORIGIN = b"https://chat.example"


def sent_by_preflight(headers: dict[bytes, bytes]) -> dict[bytes, bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(answer_preflight(let_read({}, send, ORIGIN), headers))
    assert (sent[0]["status"], sent[1]["body"]) == (204, b"")
    return dict(sent[0]["headers"])


def test_a_preflight_is_told_our_methods_and_the_very_headers_that_it_names() -> None:
    headers = sent_by_preflight({b"access-control-request-headers": b"authorization,x-stainless-os"})

    assert headers == {
        b"access-control-allow-origin": ORIGIN,
        b"access-control-allow-methods": METHODS,
        b"access-control-allow-headers": b"authorization,x-stainless-os",
        b"access-control-max-age": b"600",
        b"access-control-expose-headers": b"*",
        b"vary": b"origin",
    }


@pytest.mark.parametrize("asked", [b"", b"*/*", b"a b", b"a,,b", b"a:b", b"a\r\nb", b"a" * (ASKED_BYTES_MAX + 1)])
def test_what_is_no_list_of_names_is_not_repeated(asked: bytes) -> None:
    assert b"access-control-allow-headers" not in sent_by_preflight({b"access-control-request-headers": asked})


def test_a_page_on_the_internet_may_ask_for_a_door_in_its_own_network() -> None:
    name = b"access-control-allow-private-network"
    assert sent_by_preflight({b"access-control-request-private-network": b"true"})[name] == b"true"
    assert name not in sent_by_preflight({})


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        ("OPTIONS", {b"access-control-request-method": b"POST"}, True),
        ("OPTIONS", {}, False),
        ("POST", {b"access-control-request-method": b"POST"}, False),
    ],
)
def test_a_preflight_says_what_it_asks_for(method: str, headers: dict[bytes, bytes], expected: bool) -> None:
    assert is_preflight(method, headers) is expected


def test_what_an_engine_says_of_origins_does_not_come_beside_what_we_say() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    engine = [(b"access-control-allow-origin", b"*"), (b"access-control-allow-credentials", b"true"), (b"x", b"y")]

    async def answer() -> None:
        await let_read({}, send, ORIGIN)({"type": "http.response.start", "status": 200, "headers": engine})

    asyncio.run(answer())
    headers = sent[0]["headers"]
    assert [value for name, value in headers if name == b"access-control-allow-origin"] == [ORIGIN]
    assert b"access-control-allow-credentials" not in dict(headers)
    assert (b"x", b"y") in headers


ENGINE_SAYS = [(b"access-control-allow-origin", b"*"), (b"x", b"y"), (b"content-length", b"4")]


async def by_messages(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": ENGINE_SAYS})
    await send({"type": "http.response.body", "body": b"done"})


async def by_line(scope: Scope, receive: Receive, send: Send) -> None:
    line: Line = scope["extensions"][LINE_EXTENSION]["line"]
    assert line.body_here(100) == b"body" or await line.body(100) == b"body"
    line.on_leave(None)
    line.begin(200, ENGINE_SAYS)
    await line.room()
    line.write(b"do")
    line.end(b"ne")


@pytest.mark.parametrize("app", [by_messages, by_line])
@pytest.mark.parametrize(("origin", "told"), [(ORIGIN, ORIGIN), (b"", b"*")])
def test_an_answer_is_readable_in_whichever_way_it_is_sent(app: Application, origin: bytes, told: bytes) -> None:
    asking = (b"origin: " + origin,) if origin else ()

    async def main() -> None:
        guard = DoorGuard(app, allowed_origins=(ORIGIN.decode(),))
        async with serving(guard) as server, connected(server.url) as client:
            for _ in range(2):
                client.send(request(b"POST", b"/", *asking, body=b"body"))
                reply = await client.reply()
                assert (reply.status, reply.body, reply.header(b"x")) == (200, b"done", b"y")
                assert [value for name, value in reply.headers if name == b"access-control-allow-origin"] == [told]

    run_bounded(main())
