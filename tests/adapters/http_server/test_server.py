import asyncio
import contextlib
import errno
import json
import socket
from collections.abc import AsyncIterator

import pytest

from adapters.engine_http.scripted_engine import eventually, run_bounded
from adapters.raw_client import connected, fetch, request
from luftpause.adapters.http_server import server as http_server
from luftpause.adapters.http_server.listening import AddressInUseError, CannotListenError
from luftpause.adapters.http_server.protocol import DoorProtocol
from luftpause.adapters.http_server.reader import HEAD_BYTES_MAX
from luftpause.adapters.http_server.refusal import Refusals
from luftpause.adapters.http_server.server import ApplicationFailedError, HttpServer
from luftpause.ports.asgi import LINE_EXTENSION, Application, Message, Receive, Scope, Send

START: Message = {"type": "http.response.start", "status": 200, "headers": []}


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the request's body."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        if not message["more_body"]:
            break
    await send({**START, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def serving(
    app: Application, *, lifespan: bool = False, head_timeout_s: float = 20.0
) -> AsyncIterator[HttpServer]:
    server = HttpServer(
        app,
        host="127.0.0.1",
        port=0,
        lifespan=lifespan,
        refusals=Refusals(headers=lambda headers: ((b"x-run", b"r"),)),
    )
    server.head_timeout_s = head_timeout_s
    await server.start()
    try:
        yield server
    finally:
        await server.close(grace_s=0.0)


def doors(server: HttpServer) -> list[DoorProtocol]:
    assert server._state is not None
    return list(server._state.connections)


def test_port_0_picks_a_port_and_the_url_tells_it() -> None:
    async def main() -> None:
        async with serving(echo) as server:
            assert server.url == f"http://127.0.0.1:{server.port}"
            assert server.port != 0
            reply = await fetch(server.url, b"POST", b"/", body=b"hello")
            assert (reply.status, reply.body) == (200, b"hello")
            assert reply.header(b"server") is None
            assert reply.header(b"date") is None

    run_bounded(main())


def test_a_taken_port_is_named_with_the_way_out() -> None:
    async def main() -> None:
        async with serving(echo) as first:
            with pytest.raises(AddressInUseError, match=f"127.0.0.1:{first.port} is already in use.*another port"):
                await HttpServer(echo, host="127.0.0.1", port=first.port).start()

    run_bounded(main())


def test_a_port_is_free_again_after_close() -> None:
    async def main() -> None:
        async with serving(echo) as first:
            await fetch(first.url, b"POST", b"/", body=b"x")
        again = HttpServer(echo, host="127.0.0.1", port=first.port)
        await again.start()
        await again.close(grace_s=0.0)

    run_bounded(main())


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_named(host: str) -> None:
    async def main() -> None:
        with pytest.raises(CannotListenError, match=f"cannot listen on {host}:0"):
            await HttpServer(echo, host=host, port=0).start()

    run_bounded(main())


def test_accepted_sockets_do_not_wait_for_more_to_send() -> None:
    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", body=b"x"))
            await client.reply()
            accepted = doors(server)[0].transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0

    run_bounded(main())


def test_lifespan_runs_around_serving() -> None:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            scope["state"]["seen"].append("request")
            await echo(scope, receive, send)
            return
        while True:
            kind = (await receive())["type"]
            seen.append(kind)
            scope["state"]["seen"] = seen
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def main() -> None:
        async with serving(app, lifespan=True) as server:
            await fetch(server.url, b"POST", b"/", body=b"x")
        assert seen == ["lifespan.startup", "request", "lifespan.shutdown"]

    run_bounded(main())


def test_an_application_that_does_not_start_is_an_error_and_frees_the_port() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    async def main() -> None:
        server = HttpServer(app, host="127.0.0.1", port=0, lifespan=True)
        with pytest.raises(ApplicationFailedError, match="did not start"):
            await server.start()
        free = HttpServer(echo, host="127.0.0.1", port=server.port)
        await free.start()
        await free.close()
        await server.close()

    run_bounded(main())


def holding(release: asyncio.Event) -> Application:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await release.wait()
        await send({"type": "http.response.body", "body": b"last"})

    return app


def test_closing_lets_open_requests_end_and_takes_no_new_ones() -> None:
    async def main() -> None:
        release = asyncio.Event()
        server = HttpServer(holding(release), host="127.0.0.1", port=0)
        await server.start()
        async with connected(server.url) as idle, connected(server.url) as client:
            client.send(request(b"GET", b"/"))
            await client.head()
            assert await client.chunk() == b"first"
            closing = asyncio.create_task(server.close(grace_s=10.0))
            assert await idle.ended()
            with pytest.raises(OSError, match=r"."):
                await fetch(server.url, b"GET", b"/")
            assert not closing.done()
            release.set()
            assert await client.chunk() == b"last"
            assert await client.chunk() == b""
            assert await client.ended()
            await closing

    run_bounded(main())


def test_closing_aborts_what_is_open_after_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "ABORT_S", 0.02)

    async def main() -> None:
        server = HttpServer(holding(asyncio.Event()), host="127.0.0.1", port=0)
        await server.start()
        async with connected(server.url) as client:
            client.send(request(b"GET", b"/"))
            await client.head()
            assert await client.chunk() == b"first"
            await server.close(grace_s=0.01)
            assert await client.ended()
            assert server._state is not None
            assert not server._state.tasks

    run_bounded(main())


BAD = [
    (b"hello\r\n\r\n", 400),
    (request(b"GET", b"/", b"x: a\0b"), 400),
    (request(b"GET", b"/", b"x: a\rb"), 400),
    (request(b"POST", b"/", b"content-length: -5") + b"hello", 400),
    (request(b"POST", b"/", b"content-length: 5", body=b"hello"), 400),
    (request(b"POST", b"/", b"content-length: five") + b"hello", 400),
    (request(b"POST", b"/", b"transfer-encoding: chunked", body=b"hello"), 400),
    (request(b"POST", b"/", b"transfer-encoding: gzip") + b"hello", 400),
    (request(b"POST", b"/", b"transfer-encoding: chunked") + b"zz\r\n", 400),
    (request(b"CONNECT", b"x:1"), 400),
    (request(b"GET", b"/", b"x: " + b"a" * (HEAD_BYTES_MAX + 1)), 431),
    (b"GET /" + b"a" * (HEAD_BYTES_MAX + 1), 431),
    (b"GET / HTTP/1.1\r\nx: " + b"a" * 4 * HEAD_BYTES_MAX, 431),
]


@pytest.mark.parametrize(("raw", "status"), BAD, ids=range(len(BAD)))
def test_what_is_no_http_gets_a_json_error_and_the_server_goes_on(raw: bytes, status: int) -> None:
    async def main() -> None:
        async with serving(echo) as server:
            async with connected(server.url) as client:
                client.send(raw)
                reply = await client.reply()
                assert reply.status == status
                assert reply.header(b"content-type") == b"application/json"
                assert reply.header(b"x-run") == b"r"
                assert json.loads(reply.body)["error"]["code"] in ("bad_http", "headers_too_large")
                assert await client.ended()
            assert (await fetch(server.url, b"POST", b"/", body=b"on")).body == b"on"

    run_bounded(main())


def test_a_long_body_is_no_long_head() -> None:
    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            for _ in range(2):
                client.send(request(b"POST", b"/", body=b"x" * 8 * HEAD_BYTES_MAX))
                assert (await client.reply()).body == b"x" * 8 * HEAD_BYTES_MAX

    run_bounded(main())


def test_a_body_that_breaks_after_the_answer_began_cuts_it() -> None:
    async def main() -> None:
        release = asyncio.Event()
        async with serving(holding(release)) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"transfer-encoding: chunked") + b"1\r\na\r\n")
            await client.head()
            assert await client.chunk() == b"first"
            client.send(b"broken\r\n")
            assert await client.ended()
            release.set()

    run_bounded(main())


@pytest.mark.parametrize("partial", [b"", b"GET / HT", b"\r\n\r\n"])
def test_a_client_that_does_not_finish_its_head_is_dropped(partial: bytes) -> None:
    async def main() -> None:
        async with serving(echo, head_timeout_s=0.05) as server, connected(server.url) as client:
            client.send(partial)
            assert await client.ended()

    run_bounded(main())


def test_an_idle_connection_is_closed_and_one_that_is_answered_is_not() -> None:
    async def main() -> None:
        release = asyncio.Event()
        server = HttpServer(holding(release), host="127.0.0.1", port=0)
        server.keep_alive_s = 0.02
        await server.start()
        async with connected(server.url) as client, connected(server.url) as busy:
            busy.send(request(b"GET", b"/"))
            await busy.head()
            release.set()
            client.send(request(b"GET", b"/"))
            assert (await client.reply()).body == b"firstlast"
            assert await client.ended()
            assert await busy.chunk() == b"first"
        await server.close(grace_s=0.0)

    run_bounded(main())


@pytest.mark.interpreted
def test_a_slow_answer_is_not_a_slow_head(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        release = asyncio.Event()
        async with serving(holding(release), head_timeout_s=0.02) as server, connected(server.url) as client:
            client.send(request(b"GET", b"/"))
            await client.head()
            assert await client.chunk() == b"first"
            sweeps = 0

            def count(door: DoorProtocol, now: float) -> None:
                nonlocal sweeps
                sweeps += 1
                expire(door, now)

            expire = DoorProtocol.expire
            monkeypatch.setattr(DoorProtocol, "expire", count)
            await eventually(lambda: sweeps > 8)
            release.set()
            assert await client.chunk() == b"last"

    run_bounded(main())


def leaving_watcher(started: asyncio.Event, left: asyncio.Event) -> Application:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    return app


@pytest.mark.parametrize("surplus", [b"", request(b"GET", b"/second"), b"garbage"])
@pytest.mark.parametrize("together", [True, False])
def test_a_client_that_leaves_is_noticed_whatever_it_sent_behind_its_request(surplus: bytes, together: bool) -> None:
    async def main() -> None:
        started, left = asyncio.Event(), asyncio.Event()
        async with serving(leaving_watcher(started, left)) as server, connected(server.url) as client:
            client.send(request(b"GET", b"/") + (surplus if together else b""))
            await started.wait()
            client.send(b"" if together else surplus)
            for _ in range(5):
                await asyncio.sleep(0)
            assert not left.is_set()
            client.leave()
            await left.wait()

    run_bounded(main())


@pytest.mark.parametrize("surplus", [request(b"GET", b"/second"), b"garbage", b"x" * 200_000])
def test_a_request_is_answered_and_what_follows_it_unasked_is_not(surplus: bytes) -> None:
    async def main() -> None:
        paths = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            paths.append(scope["path"])
            await echo(scope, receive, send)

        async with serving(app) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/first", body=b"1") + surplus)
            reply = await client.reply()
            assert (reply.status, reply.body, reply.header(b"connection")) == (200, b"1", b"close")
            assert await client.ended()
            assert paths == ["/first"]

    run_bounded(main())


def test_an_application_can_cut_its_answer() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        scope["extensions"][LINE_EXTENSION]["line"].cut()

    async def main() -> None:
        async with serving(app) as server:
            reply = await fetch(server.url, b"GET", b"/")
            assert (reply.body, reply.broken) == (b"half", True)

    run_bounded(main())


def test_an_early_answer_reaches_a_client_that_is_still_sending() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({**START, "status": 413, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"no"})

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", body=b"x" * 40_000_000))
            await client.writer.drain()
            assert (await client.reply()).status == 413
            client.send(request(b"POST", b"/", body=b"x"))
            assert (await client.reply()).status == 413

    run_bounded(main())


def test_an_offer_to_speak_http_2_is_passed_over() -> None:
    async def main() -> None:
        async with serving(echo) as server:
            reply = await fetch(server.url, b"GET", b"/", b"connection: upgrade, http2-settings", b"upgrade: h2c")
            assert reply.status == 200

    run_bounded(main())


@pytest.mark.parametrize("surplus", [b"\r\n" * 2 * HEAD_BYTES_MAX, b"x" * 4 * HEAD_BYTES_MAX])
@pytest.mark.parametrize("header", [b"x: y", b"connection: close"])
def test_an_answer_under_way_is_not_mixed_with_a_refusal(surplus: bytes, header: bytes) -> None:
    async def main() -> None:
        release = asyncio.Event()
        async with serving(holding(release)) as server, connected(server.url) as client:
            client.send(request(b"GET", b"/", header))
            await client.head()
            assert await client.chunk() == b"first"
            client.send(surplus)
            await client.writer.drain()
            for _ in range(20):
                await asyncio.sleep(0)
            release.set()
            assert await client.chunk() == b"last"
            assert await client.chunk() == b""
            assert await client.ended()

    run_bounded(main())


def test_a_client_that_broke_its_body_is_given_no_leave_to_send_it(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving(echo) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"expect: 100-continue", b"transfer-encoding: chunked") + b"zz\r\n")
            assert (await client.reply()).status == 400
            assert await client.ended()

    run_bounded(main())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_the_last_answer_reaches_a_client_that_is_still_sending() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({**START, "status": 413, "headers": [(b"connection", b"close"), (b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"no"})

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", body=b"x" * 40_000_000))
            await client.writer.drain()
            reply = await client.reply()
            assert (reply.status, reply.body) == (413, b"no")
            assert await client.ended()

    run_bounded(main())


def big(size: int) -> Application:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b"x" * size})

    return app


@pytest.mark.parametrize("header", [b"x: y", b"connection: close"])
def test_a_client_that_does_not_read_its_answer_is_dropped(header: bytes) -> None:
    async def main() -> None:
        server = HttpServer(big(30_000_000), host="127.0.0.1", port=0)
        server.head_timeout_s = server.keep_alive_s = 0.02
        await server.start()
        async with connected(server.url) as client:
            client.read_no_more()
            client.send(request(b"GET", b"/", header))
            await eventually(lambda: len(doors(server)) == 1)
            await eventually(lambda: not doors(server))
        await server.close(grace_s=0.0)

    run_bounded(main())


def test_a_client_that_reads_its_answer_slowly_is_not_dropped() -> None:
    async def main() -> None:
        async with serving(big(30_000_000)) as server, connected(server.url) as client:
            client.send(request(b"GET", b"/", b"connection: close"))
            head = await client.head()
            (door,) = doors(server)
            while unsent := door.transport.get_write_buffer_size():
                door.expire(door.overdue_at + 1.0)
                await eventually(lambda: door.transport.get_write_buffer_size() != unsent)
            assert head.header(b"connection") == b"close"
            assert len(await client.chunk()) == 30_000_000
            assert await client.chunk() == b""

    run_bounded(main())


class Departed(asyncio.Transport):
    """A connection whose client is gone, which nobody but its socket knows."""

    aborted = False

    def is_closing(self) -> bool:
        return self.aborted

    def write(self, data: object) -> None:
        pass

    def write_eof(self) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    def abort(self) -> None:
        self.aborted = True


def test_a_client_that_left_without_a_goodbye_is_no_fault_of_its_application(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with serving(echo) as server:
            assert server._state is not None
            door, wire = DoorProtocol(server._state, asyncio.get_running_loop()), Departed()
            door.connection_made(wire)
            raw = request(b"GET", b"/", b"connection: close")
            door.get_buffer(-1)[: len(raw)] = raw
            door.buffer_updated(len(raw))
            await eventually(lambda: wire.aborted)
            door.connection_lost(None)

    run_bounded(main())
    assert "application_failed" not in caplog.text
