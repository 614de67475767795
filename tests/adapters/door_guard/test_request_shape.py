"""Requests that two readers could take for two different ones, over a real socket: one answer, then the end."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from adapters.http_server.test_server import echo, serving
from adapters.raw_client import connected
from luftpause.adapters.door_guard.guard import DoorGuard
from luftpause.adapters.door_guard.request_shape import HEADERS_MAX
from luftpause.adapters.http_server.server import HttpServer
from luftpause.core.dialects.harness import SESSION_HEADERS
from luftpause.ports.asgi import Receive, Scope, Send

HOST = b"host: 127.0.0.1\r\n"
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"


def posted(*lines: bytes, body: bytes = CHUNKS, version: bytes = b"1.1") -> bytes:
    """Return a request with these lines between its host and its body."""
    head = b"POST /v1/messages HTTP/" + version + b"\r\n" + HOST
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def chunked(body: bytes) -> bytes:
    return posted(b"transfer-encoding: chunked", body=body)


def aimed(target: bytes, version: bytes = b"HTTP/1.1") -> bytes:
    return b"GET " + target + b" " + version + b"\r\n" + HOST + b"\r\n"


REFUSED = {
    "two hosts": posted(b"host: evil.example", b"content-length: 5", body=b"hello"),
    "the same host twice": posted(b"host: 127.0.0.1", b"content-length: 5", body=b"hello"),
    "two origins": posted(b"origin: http://127.0.0.1", b"origin: http://evil", b"content-length: 0", body=b""),
    "two tokens": posted(b"authorization: Bearer a", b"Authorization: Bearer b", b"content-length: 0", body=b""),
    **{
        f"two of {name.decode()}": posted(name + b": a", name + b": a", b"content-length: 0", body=b"")
        for name in SESSION_HEADERS
    },
    "two runs": posted(b"x-luftpause-run-id: a", b"X-Luftpause-Run-Id: b", b"content-length: 0", body=b""),
    "two types": posted(b"content-type: text/plain", b"content-type: application/json", b"content-length: 0", body=b""),
    "the same length twice": posted(b"content-length: 5", b"content-length: 5", body=b"hello"),
    "a list of lengths": posted(b"content-length: 5, 5", body=b"hello"),
    "a signed length": posted(b"content-length: +5", body=b"hello"),
    "a length in hex": posted(b"content-length: 0x5", body=b"hello"),
    "an empty length": posted(b"content-length:", body=b""),
    "a length without end": posted(b"content-length: 99999999999999999999", body=b"hello"),
    "a length in groups": posted(b"content-length: 1_0", body=b"hellohello"),
    "a blank before the colon of a length": posted(b"content-length : 5", body=b"hello"),
    "a length, then chunks": posted(b"content-length: 5", b"transfer-encoding: chunked"),
    "chunks, then a length": posted(b"transfer-encoding: chunked", b"content-length: 5"),
    "identity last": posted(b"transfer-encoding: chunked, identity"),
    "identity first": posted(b"transfer-encoding: identity, chunked"),
    "identity alone": posted(b"transfer-encoding: identity"),
    "a coding that nobody undoes": posted(b"transfer-encoding: gzip, chunked"),
    "chunked twice in a list": posted(b"transfer-encoding: chunked, chunked"),
    "chunked twice": posted(b"transfer-encoding: chunked", b"transfer-encoding: chunked"),
    "identity in a line before": posted(b"transfer-encoding: identity", b"transfer-encoding: chunked"),
    "identity in a line behind": posted(b"transfer-encoding: chunked", b"transfer-encoding: identity"),
    "nearly chunked": posted(b"transfer-encoding: xchunked"),
    "an empty coding": posted(b"transfer-encoding:"),
    "a parameter of chunked": posted(b"transfer-encoding: chunked;q=1"),
    "a quoted coding": posted(b'transfer-encoding: "chunked"'),
    "a tab of another kind": posted(b"transfer-encoding: \x0bchunked"),
    "a folded coding": posted(b"transfer-encoding:\r\n chunked"),
    "a blank before the colon of a coding": posted(b"transfer-encoding : chunked"),
    "chunks in HTTP/1.0": posted(b"transfer-encoding: chunked", version=b"1.0"),
    "a folded header": posted(b"x: a\r\n b", b"content-length: 5", body=b"hello"),
    "a folded first header": b"GET / HTTP/1.1\r\n " + HOST + b"\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nhost: 127.0.0.1\n\n",
    "one bare line feed": posted(b"x: a\ny: b", b"content-length: 0", body=b""),
    "a bare line feed at the end": b"GET / HTTP/1.1\r\n" + HOST + b"\n",
    "a bare carriage return": posted(b"x: a\ry: b", b"content-length: 0", body=b""),
    "two carriage returns": posted(b"x: a\r", b"content-length: 0", body=b""),
    "NUL in a name": posted(b"x\0: a", b"content-length: 0", body=b""),
    "a control in a value": posted(b"x: a\x01b", b"content-length: 0", body=b""),
    "delete in a value": posted(b"x: a\x7f", b"content-length: 0", body=b""),
    "a tab before the colon": posted(b"x\t: a", b"content-length: 0", body=b""),
    "no name": posted(b": a", b"content-length: 0", body=b""),
    "no colon": posted(b"x", b"content-length: 0", body=b""),
    "a name beyond ASCII": posted(b"x\xff: a", b"content-length: 0", body=b""),
    "a chunk size with a prefix": chunked(b"0x5\r\nhello\r\n0\r\n\r\n"),
    "a signed chunk size": chunked(b"+5\r\nhello\r\n0\r\n\r\n"),
    "a blank before a chunk size": chunked(b" 5\r\nhello\r\n0\r\n\r\n"),
    "a blank behind a chunk size": chunked(b"5 \r\nhello\r\n0\r\n\r\n"),
    "a chunk size without end": chunked(b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
    "no chunk size": chunked(b"\r\nhello\r\n0\r\n\r\n"),
    "a chunk size that a bare line feed ends": chunked(b"5\nhello\r\n0\r\n\r\n"),
    "a chunk that nothing ends": chunked(b"5\r\nhello0\r\n\r\n"),
    "a chunk that a bare line feed ends": chunked(b"5\r\nhello\n0\r\n\r\n"),
    "a chunk extension that a bare line feed ends": chunked(b"5;a\nhello\r\n0\r\n\r\n"),
    "a carriage return in a chunk extension": chunked(b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
    "a length among the trailers": chunked(b"5\r\nhello\r\n0\r\ncontent-length: 3\r\n\r\n"),
    "an authority for a target": aimed(b"evil.example:80"),
    "a target without a slash": aimed(b"v1/models"),
    "a blank in the target": aimed(b"/a b"),
    "a control in the target": aimed(b"/a\x01b"),
    "a target beyond ASCII": aimed(b"/a\xffb"),
    "a query beyond ASCII": aimed(b"/a?\xff"),
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/1.2": aimed(b"/", b"HTTP/1.2"),
    "HTTP/2.0": aimed(b"/", b"HTTP/2.0"),
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a method of one's own": b"SMUGGLE / HTTP/1.1\r\n" + HOST + b"\r\n",
    "a lower case method": b"get / HTTP/1.1\r\n" + HOST + b"\r\n",
    "an upgrade with both framings": posted(
        b"connection: upgrade", b"upgrade: h2c", b"content-length: 5", b"transfer-encoding: chunked"
    ),
    "an upgrade with two hosts": posted(
        b"connection: upgrade", b"upgrade: h2c", b"host: evil", b"content-length: 0", body=b""
    ),
}


@contextlib.asynccontextmanager
async def guarded(seen: list[Scope]) -> AsyncIterator[HttpServer]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await echo(scope, receive, send)

    async with serving(DoorGuard(app)) as server:
        yield server


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED.keys())
def test_what_could_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_heard(raw: bytes) -> None:
    seen: list[Scope] = []

    async def main() -> None:
        async with guarded(seen) as server:
            async with connected(server.url) as client:
                client.send(raw + SMUGGLED)
                reply = await client.reply()
                assert reply.status == 400
                assert json.loads(reply.body)["error"]["code"] == "bad_http"
                assert await client.ended()
            async with connected(server.url) as client:
                client.send(SMUGGLED)
                assert (await client.reply()).status == 200

    run_bounded(main())
    paths = [scope["path"] for scope in seen]
    assert paths.pop() == "/smuggled"
    assert "/smuggled" not in paths


SOUND = {
    "chunked in capitals": posted(b"transfer-encoding: CHUNKED"),
    "a chunk extension": chunked(b"5;a=b\r\nhello\r\n0\r\n\r\n"),
    "a harmless trailer": chunked(b"5\r\nhello\r\n0\r\nx: y\r\n\r\n"),
    "an expectation of another kind": posted(b"expect: 200-ok", b"content-length: 5", body=b"hello"),
    "two of a header that may be repeated": posted(b"accept: a", b"accept: b", b"content-length: 5", body=b"hello"),
    "HTTP/1.0": posted(b"content-length: 5", body=b"hello", version=b"1.0"),
    "as many headers as may be": posted(
        *(b"x-%d: y" % number for number in range(HEADERS_MAX - 2)), b"content-length: 5", body=b"hello"
    ),
}


@pytest.mark.parametrize("raw", SOUND.values(), ids=SOUND.keys())
def test_what_is_merely_odd_is_served(raw: bytes) -> None:
    async def main() -> None:
        async with guarded([]) as server, connected(server.url) as client:
            client.send(raw)
            reply = await client.reply()
            assert (reply.status, reply.body) == (200, b"hello")

    run_bounded(main())


@pytest.mark.parametrize("name", [b"x-%d", b"x"])
def test_too_many_headers_are_refused(name: bytes) -> None:
    lines = [name % number if b"%" in name else name for number in range(HEADERS_MAX)]

    async def main() -> None:
        async with guarded([]) as server, connected(server.url) as client:
            client.send(posted(*(line + b": y" for line in lines), b"content-length: 0", body=b""))
            reply = await client.reply()
            assert (reply.status, json.loads(reply.body)["error"]["code"]) == (431, "headers_too_large")
            assert await client.ended()

    run_bounded(main())


@pytest.mark.parametrize(
    ("target", "status"),
    [(b"http://127.0.0.1/x", 200), (b"http://evil.example/x", 421), (b"//evil.example/x", 200), (b"*", 200)],
)
@pytest.mark.parametrize("version_and_host", [b"1.1\r\n" + HOST, b"1.0\r\n" + HOST, b"1.0\r\n"])
def test_a_target_with_a_host_is_judged_by_it(target: bytes, status: int, version_and_host: bytes) -> None:
    seen: list[Scope] = []

    async def main() -> None:
        async with guarded(seen) as server, connected(server.url) as client:
            client.send(b"OPTIONS " + target + b" HTTP/" + version_and_host + b"\r\n")
            assert (await client.reply()).status == status

    run_bounded(main())
    assert len(seen) == (1 if status == 200 else 0)
