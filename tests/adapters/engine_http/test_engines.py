import asyncio
import random
import socket
import ssl
from typing import cast

import pytest
import trustme

from adapters.engine_http.scripted_engine import (
    ScriptedEngine,
    Visit,
    answer,
    at_rest,
    chunked,
    eventually,
    run_bounded,
)
from luftpause.adapters.engine_http.connection import Connection
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.engine_http.exchange import BODY_BYTES_HELD, QUIET_BYTES_MAX
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError, Exchange

pytestmark = pytest.mark.usefixtures("each_loop")


def post(body: bytes = b"{}", *headers: tuple[bytes, bytes]) -> EngineRequest:
    return EngineRequest(method=b"POST", path=b"/v1/chat/completions", headers=headers, body=body)


async def whole(exchange: Exchange) -> bytes:
    pieces = []
    while piece := await exchange.read():
        pieces.append(piece)
    return b"".join(pieces)


async def ask(engines: Engines, url: str, request: EngineRequest | None = None, key: str = "") -> tuple[int, bytes]:
    exchange = await engines.send(Endpoint(url=url, api_key_env=key), request or post())
    try:
        return exchange.status, await whole(exchange)
    finally:
        exchange.close()


def replying(*raw: bytes, then_close: bool = False) -> ScriptedEngine:
    """Return an engine that answers the n-th request of each connection with the n-th raw answer, then waits."""

    async def script(visit: Visit) -> None:
        for piece in raw:
            await visit.request()
            visit.send(piece)
        if not then_close:
            await visit.left()

    return ScriptedEngine(script)


def test_a_request_reaches_the_engine_as_given_with_our_own_headers_added() -> None:
    async def main() -> None:
        seen = []

        async def script(visit: Visit) -> None:
            seen.append(await visit.request())
            visit.send(answer(b"{}"))

        async with ScriptedEngine(script).listening() as engine:
            body = b'{"model": "m\xc3\xa4"}'
            request = post(body, (b"x-one", b"1"), (b"content-type", b"application/json"))
            assert await ask(HttpEngines(), f"{engine.url}/base/", request) == (200, b"{}")
            received = seen[0]
            assert received.line == b"POST /base/v1/chat/completions HTTP/1.1"
            assert received.body == body
            assert received.header(b"host") == b"127.0.0.1:%d" % engine.port
            assert received.header(b"content-length") == b"%d" % len(body)
            assert received.header(b"accept-encoding") == b"identity"
            assert received.header(b"x-one") == b"1"
            assert received.header(b"authorization") is None

    run_bounded(main())


@pytest.mark.parametrize("key", ["two\nlines", "two\r\nx: y", "a\x7fb", "k\u00e9y", "a\tb"])
def test_a_key_that_cannot_be_sent_is_named_by_its_variable_alone(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("ENGINE_KEY", key)

    async def main() -> None:
        engines = HttpEngines()
        with pytest.raises(EngineUnreachableError) as refused:
            await ask(engines, "http://127.0.0.1:1", key="ENGINE_KEY")
        await engines.close()
        cause = "the environment variable ENGINE_KEY holds what no key may hold, such as a line break"
        assert str(refused.value) == f"not sent: {cause}"

    run_bounded(main())


def test_the_endpoints_key_is_read_when_a_request_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        keys = []

        async def script(visit: Visit) -> None:
            for _ in range(2):
                keys.append((await visit.request()).header(b"authorization"))
                visit.send(answer(b"{}"))
            await visit.left()

        async with ScriptedEngine(script).listening() as engine:
            engines = HttpEngines()
            monkeypatch.setenv("ENGINE_KEY", " first\t\n")
            await ask(engines, engine.url, key="ENGINE_KEY")
            monkeypatch.setenv("ENGINE_KEY", "second")
            await ask(engines, engine.url, key="ENGINE_KEY")
            monkeypatch.delenv("ENGINE_KEY")
            with pytest.raises(EngineUnreachableError, match="ENGINE_KEY that holds its key is not set"):
                await ask(engines, engine.url, key="ENGINE_KEY")
            await engines.close()
            assert keys == [b"Bearer first", b"Bearer second"]

    run_bounded(main())


@pytest.mark.parametrize("value", [b"a\r\nx-evil: 1", b"a\nb", b"a\rb", b"a\0b"])
def test_a_header_that_could_add_a_line_is_never_written(value: bytes) -> None:
    async def main() -> None:
        async with replying().listening() as engine:
            with pytest.raises(EngineUnreachableError, match="line break or NUL"):
                await ask(HttpEngines(), engine.url, post(b"{}", (b"x-one", value)))
            assert engine.visits == []

    run_bounded(main())


@pytest.mark.parametrize(
    ("raw", "closes"),
    [
        (answer(b"body"), False),
        (chunked(b"bo", b"dy"), False),
        (b"HTTP/1.1 200 OK\r\n\r\nbody", True),
        (b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nbody", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n" + answer(b"body"), False),
        (chunked(b"body", end=False) + b"0\r\nx-trailer: t\r\n\r\n", False),
    ],
)
def test_every_framing_is_understood_at_every_cut(raw: bytes, closes: bool) -> None:
    async def main() -> None:
        cuts = iter(range(1, len(raw)))

        async def script(visit: Visit) -> None:
            while True:
                await visit.request()
                cut = next(cuts)
                visit.send(raw[:cut])
                for _ in range(3):
                    await asyncio.sleep(0)
                visit.send(raw[cut:])
                if closes:
                    return

        async with ScriptedEngine(script).listening() as engine:
            engines = HttpEngines()
            for _ in range(1, len(raw)):
                exchange = await engines.send(Endpoint(url=engine.url), post())
                assert exchange.status == 200
                assert all(name == name.lower() and name not in (b"x", b"x-trailer") for name, _ in exchange.headers)
                assert await whole(exchange) == b"body"
                assert await exchange.read() == b""
                exchange.close()
            assert len(engine.visits) == (len(raw) - 1 if closes else 1)
            await engines.close()

    run_bounded(main())


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_an_answer_without_a_body_is_complete(status: bytes) -> None:
    async def main() -> None:
        async with replying(b"HTTP/1.1 %b\r\n\r\n" % status, answer(b"next")).listening() as engine:
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (int(status[:3]), b"")
            assert await ask(engines, engine.url) == (200, b"next")
            assert len(engine.visits) == 1
            await engines.close()

    run_bounded(main())


def test_the_answer_to_head_has_no_body_whatever_length_it_announces() -> None:
    async def main() -> None:
        async with replying(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").listening() as engine:
            head = EngineRequest(method=b"HEAD", path=b"/", headers=(), body=b"")
            assert await ask(HttpEngines(), engine.url, head) == (200, b"")

    run_bounded(main())


def test_connections_are_kept_and_given_out_again() -> None:
    async def main() -> None:
        async with replying(*[answer(b"1")] * 5).listening() as engine:
            engines = HttpEngines()
            for _ in range(5):
                assert await ask(engines, engine.url) == (200, b"1")
            assert len(engine.visits) == 1
            await engines.close()
            await eventually(engine.visits[0].reader.at_eof)

    run_bounded(main())


def test_an_idle_connection_is_closed_before_the_engine_would() -> None:
    async def main() -> None:
        async with replying(answer(b"1"), answer(b"2")).listening() as engine:
            engines = HttpEngines(idle_s=0.02)
            await ask(engines, engine.url)
            await eventually(lambda: engine.visits[0].closed.is_set() or engine.visits[0].reader.at_eof())
            await ask(engines, engine.url)
            assert len(engine.visits) == 2

    run_bounded(main())


def test_a_kept_connection_that_the_engine_closed_is_replaced_without_notice() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(answer(b"1"))
            if len(engine.visits) == 1:
                await visit.request()  # arrives, and the connection dies before a byte of an answer
                visit.abort()
            else:
                await visit.left()

        engine = ScriptedEngine(script)
        async with engine.listening():
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (200, b"1")
            assert await ask(engines, engine.url) == (200, b"1")
            assert len(engine.visits) == 2
            await engines.close()

    run_bounded(main())


@pytest.mark.parametrize("end", [b"", answer(b"too long", status=b"408 Request Timeout")])
def test_a_request_that_an_engine_may_have_worked_at_is_not_given_to_it_again(end: bytes) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(answer(b"1"))
            await visit.request()
            visit.send(end)
            await visit.writer.drain()

        engine = ScriptedEngine(script)
        async with engine.listening():
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (200, b"1")
            engines._connect_timeout_s = -1.0  # whatever comes next comes later than that
            if end:
                assert await ask(engines, engine.url) == (408, b"too long")
            else:
                with pytest.raises(EngineUnreachableError, match="the connection before answering"):
                    await ask(engines, engine.url)
            assert len(engine.visits) == 1
            await engines.close()

    run_bounded(main())


def test_a_fresh_connection_that_dies_is_not_tried_again() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()

        async with ScriptedEngine(script).listening() as engine:
            with pytest.raises(EngineUnreachableError, match="the connection before answering"):
                await ask(HttpEngines(), engine.url)
            assert len(engine.visits) == 1

    run_bounded(main())


def test_a_kept_connection_that_dies_within_its_header_is_not_tried_again() -> None:
    async def main() -> None:
        async with replying(answer(b"1"), b"HTTP/1.1 200 OK\r\nx:", then_close=True).listening() as engine:
            engines = HttpEngines()
            await ask(engines, engine.url)
            with pytest.raises(EngineBrokeError, match="closed before the end of its header"):
                await ask(engines, engine.url)
            assert len(engine.visits) == 1

    run_bounded(main())


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"220 smtp.example.org ESMTP\r\n", "not valid HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "its answer is TLS; its url must begin with https://"),
        (b"HTTP/1.1 200 OK\r\nx: a\x01b\r\n\r\n", "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nab", "not valid HTTP"),
        (b"HTTP/1.1 777 Odd\r\ncontent-length: 0\r\n\r\n", "the status 777"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * (QUIET_BYTES_MAX + 1), "exceeds 64 KiB"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * (QUIET_BYTES_MAX // 20), "exceeds 64 KiB"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * QUIET_BYTES_MAX + b"\r\ncontent-length: 0\r\n\r\n", "exceeds 64 KiB"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", "'gzip, chunked'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Gzip\r\n\r\nab", "'Gzip'"),
    ],
)
def test_what_is_no_answer_is_named(raw: bytes, message: str) -> None:
    async def main() -> None:
        async with replying(raw).listening() as engine:
            with pytest.raises(EngineBrokeError, match=message):
                await ask(HttpEngines(), engine.url)

    run_bounded(main())


def test_a_long_body_beside_its_header_makes_no_long_header() -> None:
    async def main() -> None:
        body = b"a" * (2 * QUIET_BYTES_MAX)
        async with replying(answer(body)).listening() as engine:
            assert await ask(HttpEngines(), engine.url) == (200, body)

    run_bounded(main())


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        chunked(b"abc", end=False),
        chunked(b"abc", end=False) + b"zz\r\n",
        chunked(b"abc", end=False) + b"5\r\nab",
    ],
)
def test_an_answer_that_ends_early_gives_what_came_and_then_breaks(raw: bytes) -> None:
    async def main() -> None:
        async with replying(raw, then_close=True).listening() as engine:
            exchange = await HttpEngines().send(Endpoint(url=engine.url), post())
            got = b""
            while not got.startswith(b"abc"):
                got += await exchange.read()
            with pytest.raises(EngineBrokeError):
                await whole(exchange)
            exchange.close()

    run_bounded(main())


def test_bytes_after_an_answer_make_the_connection_unfit_but_not_the_answer() -> None:
    async def main() -> None:
        async with replying(answer(b"1") + b"HTTP/1.1 200 OK\r\n\r\nsmuggled", answer(b"2")).listening() as engine:
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (200, b"1")
            assert await ask(engines, engine.url) == (200, b"1")
            assert len(engine.visits) == 2

    run_bounded(main())


def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

        async def main() -> None:
            with pytest.raises(EngineUnreachableError, match=f"connection refused by 127.0.0.1:{port}"):
                await ask(HttpEngines(), f"http://127.0.0.1:{port}")

        run_bounded(main())


def test_a_host_that_does_not_accept_is_given_up() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))

        async def main() -> None:
            with pytest.raises(EngineUnreachableError, match=r"timed out after 0\.1 s"):
                await ask(HttpEngines(connect_timeout_s=0.1), f"http://127.0.0.1:{port}")

        run_bounded(main())
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize(
    "url", ["ftp://x", "127.0.0.1:80", "http://", "http://u:p@x", "http://x:99999", "http://x/?q=1"]
)
def test_a_url_that_leads_nowhere_is_named(url: str) -> None:
    async def main() -> None:
        with pytest.raises(EngineUnreachableError, match="endpoint url"):
            await ask(HttpEngines(), url)

    run_bounded(main())


def test_a_name_without_an_address_is_named() -> None:
    async def main() -> None:
        with pytest.raises(EngineUnreachableError, match=r"no address found for nowhere\.invalid|timed out"):
            await ask(HttpEngines(connect_timeout_s=5), "http://nowhere.invalid")

    run_bounded(main())


def test_redirects_are_not_followed() -> None:
    async def main() -> None:
        raw = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
        async with replying(raw).listening() as engine:
            assert await ask(HttpEngines(), engine.url) == (307, b"")

    run_bounded(main())


def test_giving_up_a_request_closes_its_connection() -> None:
    async def main() -> None:
        arrived = asyncio.Event()

        async def script(visit: Visit) -> None:
            await visit.request()
            arrived.set()
            await visit.left()

        async with ScriptedEngine(script).listening() as engine:
            sending = asyncio.create_task(HttpEngines().send(Endpoint(url=engine.url), post()))
            await arrived.wait()
            sending.cancel()
            await asyncio.wait([sending])
            assert sending.cancelled()
            await engine.visits[0].closed.wait()

    run_bounded(main())


def test_closing_an_exchange_early_closes_its_connection_and_ends_reading() -> None:
    async def main() -> None:
        async with replying(chunked(b"a", end=False)).listening() as engine:
            exchange = await HttpEngines().send(Endpoint(url=engine.url), post())
            assert await exchange.read() == b"a"
            exchange.close()
            exchange.close()
            await engine.visits[0].closed.wait()
            with pytest.raises(EngineBrokeError):
                await exchange.read()

    run_bounded(main())


@pytest.mark.interpreted
def test_a_large_body_arrives_whole_and_a_slow_engine_slows_its_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Connection] = []

    class Recorded(Connection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            opened.append(self)

    monkeypatch.setattr("luftpause.adapters.engine_http.engines.Connection", Recorded)
    body = random.Random(7).randbytes(24 * 1024 * 1024)

    async def main() -> None:
        go_on = asyncio.Event()
        received = []

        async def script(visit: Visit) -> None:
            visit.read_no_more()
            await go_on.wait()
            visit.read_again()
            received.append((await visit.request()).body)
            visit.send(answer(b"ok"))

        async with ScriptedEngine(script).listening() as engine:
            engines = HttpEngines()
            asking = asyncio.create_task(ask(engines, engine.url, post(body)))
            await eventually(lambda: len(engine.visits) == 1)
            done, _ = await asyncio.wait([asking], timeout=0.1)
            assert not done
            transport = cast("asyncio.Transport", opened[0].transport)
            assert transport.get_write_buffer_size() <= 256 * 1024
            go_on.set()
            assert await asking == (200, b"ok")
            assert received == [body]
            await engines.close()

    run_bounded(main())


def test_an_engine_that_answers_before_the_body_is_written_is_heard() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.reader.readuntil(b"\r\n\r\n")
            visit.read_no_more()
            visit.send(answer(b"too large", status=b"413 Content Too Large"))
            await done.wait()

        done = asyncio.Event()
        async with ScriptedEngine(script).listening() as engine:
            engines = HttpEngines()
            assert await ask(engines, engine.url, post(b"x" * 64 * 1024 * 1024)) == (413, b"too large")
            done.set()
            await engines.close()

    run_bounded(main())


def test_a_slow_reader_slows_the_engine() -> None:
    piece = b"x" * 65536

    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (1024 * len(piece)))
            for _ in range(1024):
                visit.send(piece)
                await visit.writer.drain()
                sent.append(len(piece))
            await visit.left()

        sent: list[int] = []
        async with ScriptedEngine(script).listening() as engine:
            engines = HttpEngines()
            exchange = await engines.send(Endpoint(url=engine.url), post())
            await eventually(lambda: bool(sent))
            await at_rest(lambda: len(sent))
            assert sum(sent) < 32 * 1024 * 1024
            longest = total = 0
            while data := await exchange.read():
                longest, total = max(longest, len(data)), total + len(data)
            assert total == 1024 * len(piece)
            assert longest <= BODY_BYTES_HELD + 256 * 1024
            exchange.close()
            await engines.close()

    run_bounded(main())


def test_a_whole_answer_that_nobody_read_does_not_leave_a_connection_that_reads_no_more() -> None:
    async def main() -> None:
        async with replying(*[answer(b"x" * (BODY_BYTES_HELD + 1))] * 2).listening() as engine:
            engines = HttpEngines()
            exchange = await engines.send(Endpoint(url=engine.url), post())
            await eventually(lambda: bool(exchange.status))
            await asyncio.sleep(0)
            exchange.close()
            status, body = await ask(engines, engine.url)
            assert (status, len(body)) == (200, BODY_BYTES_HELD + 1)
            await engines.close()

    run_bounded(main())


def serving(authority: trustme.CA, name: str = "localhost") -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_https_is_spoken_to_an_engine_that_proves_its_name_and_to_no_other() -> None:
    async def main() -> None:
        async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(answer(b"secret"))
            await writer.drain()
            writer.close()

        authority = trustme.CA()
        server = await asyncio.start_server(welcome, "127.0.0.1", 0, ssl=serving(authority))
        port = server.sockets[0].getsockname()[1]
        trust = ssl.create_default_context()
        authority.configure_trust(trust)
        trusting = HttpEngines(tls=trust)
        assert await ask(trusting, f"https://localhost:{port}") == (200, b"secret")
        with pytest.raises(EngineUnreachableError, match=f"TLS with 127.0.0.1:{port} failed: its certificate is ref"):
            await ask(trusting, f"https://127.0.0.1:{port}")
        with pytest.raises(EngineUnreachableError, match=r"TLS with localhost.* SSL_CERT_FILE"):
            await ask(HttpEngines(), f"https://localhost:{port}")
        with pytest.raises(EngineUnreachableError, match=r"before answering; if it speaks TLS, .* https://"):
            await ask(trusting, f"http://localhost:{port}")
        await trusting.close()
        server.close()

    run_bounded(main())


def test_an_engine_that_has_answered_before_is_not_suspected_of_speaking_tls() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            if len(engine.visits) == 1:
                await visit.request()
                visit.send(answer(b"ok"))
            await visit.request()

        engine = ScriptedEngine(script)
        async with engine.listening():
            engines = HttpEngines()
            assert await ask(engines, engine.url) == (200, b"ok")
            with pytest.raises(EngineUnreachableError) as caught:
                await ask(engines, engine.url)
            assert "TLS" not in str(caught.value)
            await engines.close()

    run_bounded(main())
