import asyncio
from typing import Any

import pytest

from adapters.engine_http.scripted_engine import eventually, run_bounded
from adapters.http_server.test_server import echo, serving
from adapters.raw_client import connected, request
from luftpause.adapters.http_server.reader import HEAD_BYTES_MAX
from luftpause.ports.asgi import LINE_EXTENSION, Receive, Scope, Send


def test_a_request_cut_anywhere_is_the_same_request() -> None:
    raw = request(b"POST", b"/a", b"x: 1", b"transfer-encoding: chunked") + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"

    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            for cut in range(1, len(raw)):
                client.send(raw[:cut])
                await client.writer.drain()
                await asyncio.sleep(0)
                client.send(raw[cut:])
                assert (await client.reply()).body == b"hello"

    run_bounded(main())


def test_a_trailer_is_no_header() -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await scope["extensions"][LINE_EXTENSION]["line"].body(100)
        seen.extend(scope["headers"])
        await echo(scope, receive, send)

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            client.send(
                request(b"POST", b"/", b"transfer-encoding: chunked") + b"1\r\na\r\n0\r\nx-luftpause-run-id: r\r\n\r\n"
            )
            await eventually(lambda: len(seen) > 0)

    run_bounded(main())
    assert [name for name, _ in seen] == [b"host", b"transfer-encoding"]


@pytest.mark.parametrize("size", [HEAD_BYTES_MAX - 500, HEAD_BYTES_MAX + 1])
def test_only_a_head_past_the_bound_is_too_large_even_when_its_body_comes_with_it(size: int) -> None:
    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"x: " + b"a" * size, body=b"b" * 100_000))
            assert (await client.reply()).status == (200 if size < HEAD_BYTES_MAX else 431)

    run_bounded(main())


def test_a_request_follows_a_body_that_was_dropped() -> None:
    async def main() -> None:
        async with serving(refusing) as server, connected(server.url) as client:
            for _ in range(3):
                client.send(request(b"POST", b"/", body=b"b" * 300_000))
                assert (await client.reply()).status == 413

    run_bounded(main())


@pytest.mark.parametrize("cut", [20, 70])
def test_the_rest_of_a_body_that_was_dropped_is_no_part_of_the_next_head(cut: int) -> None:
    first = request(b"POST", b"/", body=b"b" * 300_000)
    second = request(b"POST", b"/", b"transfer-encoding: chunked") + b"1\r\na\r\n0\r\n\r\n"

    async def main() -> None:
        async with serving(refusing) as server, connected(server.url) as client:
            client.send(first[:1000])
            assert (await client.reply()).status == 413
            client.send(first[1000:] + second[:cut])
            await client.writer.drain()
            for _ in range(20):
                await asyncio.sleep(0)
            client.send(second[cut:])
            reply = await client.reply()
            assert (reply.status, reply.header(b"connection")) == (413, None)

    run_bounded(main())


async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


OFFER = (b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAMAAABk", b"x-note: kept ")
CHUNKED_BODY = b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_a_request_that_offers_an_upgrade_is_read_as_if_it_did_not_wherever_it_is_cut(protocol: bytes) -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope["method"], scope["path"], scope["http_version"], scope["headers"]))
        await echo(scope, receive, send)

    sized = request(b"POST", b"/a", b"Upgrade: " + protocol, *OFFER, body=b"hello")
    chunked = request(b"POST", b"/a", b"upgrade: " + protocol, *OFFER, b"transfer-encoding: chunked") + CHUNKED_BODY

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            for raw in (sized, chunked):
                for cut in range(1, len(raw), 3):
                    client.send(raw[:cut])
                    await client.writer.drain()
                    await asyncio.sleep(0)
                    client.send(raw[cut:])
                    assert (await client.reply()).body == b"hello"
            client.send(request(b"POST", b"/", body=b"plain"))
            assert (await client.reply()).body == b"plain"

    run_bounded(main())
    method, path, version, headers = seen[0]
    assert (method, path, version) == ("POST", "/a", "1.1")
    assert dict(headers) == {
        b"host": b"127.0.0.1",
        b"connection": b"Upgrade, HTTP2-Settings",
        b"http2-settings": b"AAMAAABk",
        b"x-note": b"kept",
        b"content-length": b"5",
    }


def test_a_large_body_behind_an_offer_to_upgrade_arrives_whole() -> None:
    body = bytes(range(256)) * 8000

    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"upgrade: h2c", *OFFER, body=body))
            assert (await client.reply()).body == body

    run_bounded(main())


def test_what_follows_a_request_that_offers_an_upgrade_is_still_pipelined() -> None:
    raw = request(b"POST", b"/", b"upgrade: h2c", *OFFER, body=b"one")

    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            client.send(raw + raw)
            reply = await client.reply()
            assert (reply.body, reply.header(b"connection")) == (b"one", b"close")
            assert await client.ended()

    run_bounded(main())


@pytest.mark.parametrize("target", [b"a.example:443", b"/"])
def test_a_tunnel_is_refused_and_what_would_go_through_it_is_no_request(target: bytes) -> None:
    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            client.send(request(b"CONNECT", target, b"upgrade: h2c", *OFFER))
            assert (await client.reply()).status == 400
            client.send(request(b"GET", b"/"))
            assert await client.ended()

    run_bounded(main())


@pytest.mark.parametrize("endless", [b"1;", b"1\r\na\r\n0\r\nx: "])
def test_what_a_body_carries_beside_itself_is_bounded(endless: bytes) -> None:
    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"transfer-encoding: chunked") + endless)
            for _ in range(20):
                client.send(b"x" * HEAD_BYTES_MAX)
            assert (await client.reply()).status == 431
            assert await client.ended()

    run_bounded(main())


def test_blanks_around_a_value_are_no_part_of_it() -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend(scope["headers"])
        await echo(scope, receive, send)

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            lines = (b"a: \t x y \t ", b"b: \t", b"c:z", b"expect: 100-continue ", b"content-length: 2 \t")
            client.send(request(b"POST", b"/", *lines))
            assert (await client.head()).status == 100
            client.send(b"ok")
            assert (await client.reply()).body == b"ok"

    run_bounded(main())
    assert seen[1:] == [
        (b"a", b"x y"),
        (b"b", b""),
        (b"c", b"z"),
        (b"expect", b"100-continue"),
        (b"content-length", b"2"),
    ]
