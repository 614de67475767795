import asyncio
from typing import Any

import pytest

from adapters.engine_http.scripted_engine import eventually, run_bounded
from adapters.raw_client import connected, request
from adapters.test_http_server import echo, serving
from luftpause.adapters.http_reader import HEAD_BYTES_MAX
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


async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
