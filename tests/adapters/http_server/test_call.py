import asyncio
import json
from collections.abc import Sequence

import pytest

from adapters.engine_http.scripted_engine import eventually, run_bounded
from adapters.http_server.test_server import serving
from adapters.raw_client import RawClient, connected, fetch, request
from luftpause.ports.asgi import (
    LINE_EXTENSION,
    BodyTooLongError,
    ClientLeftError,
    Line,
    Message,
    Receive,
    Running,
    Scope,
    Send,
)
from luftpause.ports.engines import Header


def start(*headers: Header, status: int = 200) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(data: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


LENGTH_2: Header = (b"content-length", b"2")

RULES: list[Sequence[Message]] = [
    [body(b"ok")],
    [start(), start()],
    [start(LENGTH_2), body(b"abc")],
    [start(LENGTH_2), body(b"a")],
    [start(LENGTH_2), body(b"ok"), body(b"more")],
    [start((b"x", b"a\r\ny: b"))],
    [start((b"x", b"a\0"))],
    [start((b"x\n", b"a"))],
    [{"type": "http.response.trailers"}],
]


@pytest.mark.parametrize("messages", RULES, ids=range(len(RULES)))
def test_an_application_that_breaks_the_rules_is_told_so(messages: Sequence[Message]) -> None:
    told: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            for message in messages:
                await send(message)
        except RuntimeError as error:
            told.append(str(error))
            raise

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            client.send(request(b"GET", b"/", b"connection: close"))
            await client.reader.read()

    run_bounded(main())
    assert len(told) == 1


@pytest.mark.parametrize("raises", [True, False])
def test_an_application_that_does_not_answer_is_answered_for(raises: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if raises:
            raise ValueError("a fault")

    async def main() -> None:
        async with serving(app) as server:
            reply = await fetch(server.url, b"GET", b"/")
            assert (reply.status, reply.header(b"connection")) == (500, b"close")
            assert json.loads(reply.body)["error"]["code"] == "internal"

    run_bounded(main())


@pytest.mark.parametrize("raises", [True, False])
def test_an_answer_that_is_not_ended_is_broken(raises: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start())
        await send(body(b"half", more=True))
        if raises:
            raise ValueError("a fault")

    async def main() -> None:
        async with serving(app) as server:
            reply = await fetch(server.url, b"GET", b"/")
            assert (reply.body, reply.broken) == (b"half", True)

    run_bounded(main())


@pytest.mark.parametrize("headers", [(), (LENGTH_2,)])
def test_the_answer_to_head_and_one_without_content_have_no_body(headers: Sequence[Header]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send(start(*headers))
            await send(body(b"ok"))
        else:
            await send(start(status=204))
            await send(body(b""))

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            for method in (b"HEAD", b"GET", b"HEAD"):
                client.send(request(method, b"/"))
                reply = await client.reply(to_head=method == b"HEAD")
                assert reply.status == (200 if method == b"HEAD" else 204)
                assert reply.header(b"transfer-encoding") is None

    run_bounded(main())


@pytest.mark.parametrize(("status", "told"), [(304, b"5"), (204, None)])
@pytest.mark.parametrize("data", [b"", b"12345"])
def test_an_answer_without_content_may_tell_a_length_that_nobody_waits_for(
    status: int, told: bytes | None, data: bytes
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start((b"content-length", b"5"), (b"etag", b"x"), status=status))
        await send(body(data))

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            for _ in range(2):
                client.send(request(b"GET", b"/"))
                reply = await client.reply()
                assert (reply.status, reply.header(b"content-length"), reply.header(b"etag")) == (status, told, b"x")

    run_bounded(main())


async def length(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the length of the body."""
    line: Line = scope["extensions"][LINE_EXTENSION]["line"]
    try:
        answer = b"%d" % len(await line.body(1_000_000))
    except BodyTooLongError:
        answer = b"long"
    await send(start((b"content-length", b"%d" % len(answer))))
    await send(body(answer))


@pytest.mark.parametrize(
    ("size", "answer"), [(0, b"0"), (999_999, b"999999"), (1_000_001, b"long"), (9 << 20, b"long")]
)
def test_a_body_is_given_out_whole_or_refused(size: int, answer: bytes) -> None:
    async def main() -> None:
        async with serving(length) as server, connected(server.url) as client:
            for _ in range(2):
                client.send(request(b"POST", b"/", body=b"x" * size))
                assert (await client.reply()).body == answer

    run_bounded(main())


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it() -> None:
    async def main() -> None:
        async with serving(length) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"expect: 100-continue", b"content-length: 2"))
            assert (await client.head()).status == 100
            client.send(b"hi")
            assert (await client.reply()).body == b"2"

    run_bounded(main())


def test_asking_whether_a_body_is_here_gives_no_leave_to_send_it() -> None:
    async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
        line: Line = scope["extensions"][LINE_EXTENSION]["line"]
        if line.body_here(1000) is None:
            line.begin(413, [(b"content-length", b"0")])
            line.end(b"")

    async def main() -> None:
        async with serving(refusing) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"expect: 100-continue", b"content-length: 2"))
            assert (await client.head()).status == 413

    run_bounded(main())


@pytest.mark.parametrize(("size", "told"), [(0, b""), (3, b"xxx"), (1001, b"long")])
def test_a_body_that_is_here_is_taken_without_waiting(size: int, told: bytes) -> None:
    async def telling(scope: Scope, receive: Receive, send: Send) -> None:
        line: Line = scope["extensions"][LINE_EXTENSION]["line"]
        try:
            taken = line.body_here(1000)
        except BodyTooLongError:
            taken = b"long"
        line.begin(200, [])
        line.end(b"late" if taken is None else taken)

    async def main() -> None:
        async with serving(telling) as server, connected(server.url) as client:
            for _ in range(2):  # the second head is known by then
                client.send(request(b"POST", b"/", body=b"x" * size))
                assert (await client.reply()).body == told

    run_bounded(main())


@pytest.mark.parametrize(
    ("version", "header", "kept"),
    [(b"1.1", b"x: y", True), (b"1.1", b"connection: close", False), (b"1.0", b"connection: keep-alive", False)],
)
def test_a_connection_is_kept_as_its_client_asks(version: bytes, header: bytes, kept: bool) -> None:
    async def main() -> None:
        async with serving(length) as server, connected(server.url) as client:
            client.send(request(b"GET", b"/", header).replace(b"HTTP/1.1", b"HTTP/" + version))
            reply = await client.reply()
            assert (reply.body, reply.header(b"connection")) == (b"0", None if kept else b"close")
            if kept:
                client.send(request(b"GET", b"/"))
                assert (await client.reply()).body == b"0"
            else:
                assert await client.ended()

    run_bounded(main())


class Told:
    """Keeps what it is told of."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def client_leaves(self, task: Running) -> None:
        self.told.append(task)


@pytest.mark.parametrize("whole", [True, False])
def test_a_client_that_leaves_is_told_of_once(whole: bool) -> None:
    answering = Told()
    told = answering.told

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        line: Line = scope["extensions"][LINE_EXTENSION]["line"]
        line.on_leave(answering)
        started.set()
        try:
            await line.body(100)
        except ClientLeftError:
            told.append("left")
            return
        await send(start())
        await asyncio.Event().wait()

    started = asyncio.Event()

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"content-length: 2") + (b"hi" if whole else b"h"))
            await started.wait()
            if whole:
                await client.head()
            client.leave()
            await eventually(lambda: len(told) == (1 if whole else 2))
        assert isinstance(told[0], asyncio.Task)

    run_bounded(main())


def test_one_that_answered_in_time_is_not_told_of() -> None:
    answering = Told()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"][LINE_EXTENSION]["line"].on_leave(answering)
        await length(scope, receive, send)

    async def main() -> None:
        async with serving(app) as server:
            client: RawClient
            async with connected(server.url) as client:
                client.send(request(b"GET", b"/"))
                await client.reply()
                client.leave()
            assert server._state is not None
            await eventually(lambda: server._state is not None and not server._state.connections)

    run_bounded(main())
    assert answering.told == []


@pytest.mark.parametrize("head", [(), ((b"Transfer-Encoding", b"chunked"),)])
def test_a_client_that_knows_no_chunks_reads_to_the_end_of_the_connection(head: Sequence[Header]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start(*head))
        await send(body(b"one", more=True))
        await send(body(b"two", more=True))
        await send(body(b""))

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            client.send(b"GET / HTTP/1.0\r\nexpect: 100-continue\r\n\r\n")
            reply = await client.head()
            assert reply.headers == [(b"connection", b"close")]
            assert await client.reader.read() == b"onetwo"

    run_bounded(main())


@pytest.mark.parametrize("lengths", [(LENGTH_2,), ()])
def test_how_an_answer_is_framed_is_not_the_applications_affair(lengths: Sequence[Header]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        status = 204 if scope["path"] == "/204" else 200
        await send(start((b"transfer-encoding", b"chunked"), *lengths, status=status))
        await send(body(b"ok"))

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            for path in (b"/204", b"/", b"/204"):
                client.send(request(b"GET", path))
                reply = await client.reply()
                assert reply.body == (b"" if path == b"/204" else b"ok")
                chunked = path == b"/" and not lengths
                assert reply.header(b"transfer-encoding") == (b"chunked" if chunked else None)

    run_bounded(main())


def test_no_body_is_waited_for_that_a_client_was_given_no_leave_to_send() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start((b"content-length", b"0"), status=413))
        await send(body(b""))

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            client.send(request(b"POST", b"/", b"expect: 100-continue", b"content-length: 2"))
            reply = await client.reply()
            assert (reply.status, reply.header(b"connection")) == (413, b"close")
            client.send(request(b"GET", b"/"))
            assert await client.ended()

    run_bounded(main())


@pytest.mark.parametrize(("method", "status"), [(b"GET", 200), (b"HEAD", 200), (b"GET", 204)])
@pytest.mark.parametrize("ending", ["late", "never", "fails", "cuts"])
def test_a_client_that_has_the_whole_answer_may_ask_again(method: bytes, status: int, ending: str) -> None:
    released = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start(LENGTH_2, status=status))
        await send(body(b"ok", more=True))
        if scope["path"] == "/first":
            assert (await receive())["type"] == "http.request"
            assert (await receive())["type"] == "http.disconnect"
            await released.wait()
        if ending == "fails":
            raise ValueError("a fault")
        if ending == "cuts":
            scope["extensions"][LINE_EXTENSION]["line"].cut()
        elif ending == "late":
            await send(body(b""))

    async def main() -> None:
        async with serving(app) as server, connected(server.url) as client:
            for path in (b"/first", b"/second", b"/third"):
                client.send(request(method, path))
                reply = await client.reply(to_head=method == b"HEAD")
                assert (reply.status, reply.header(b"connection")) == (status, None)
                if path == b"/second":
                    released.set()

    run_bounded(main())


def test_an_application_that_breaks_off_because_its_client_left_did_not_fail(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        started.set()
        await receive()
        raise ValueError("the client left")

    started = asyncio.Event()

    async def main() -> None:
        async with serving(app) as server:
            async with connected(server.url) as client:
                client.send(request(b"GET", b"/"))
                await started.wait()
            state = server._state
            assert state is not None
            await eventually(lambda: not state.tasks)

    caplog.set_level("INFO")
    run_bounded(main())
    assert [(record.levelname, record.message) for record in caplog.records] == [("INFO", "application_broke_off")]


@pytest.mark.parametrize("status", [200, 204])
def test_an_answer_for_an_application_is_not_framed_as_the_head_that_failed(status: int) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start((b"x", b"a\r\ny: b"), status=status))

    async def main() -> None:
        async with serving(app) as server:
            reply = await fetch(server.url, b"GET", b"/")
            assert (reply.status, reply.broken) == (500, False)
            assert json.loads(reply.body)["error"]["code"] == "internal"

    run_bounded(main())


@pytest.mark.parametrize(("eager", "whole"), [(True, True), (True, False), (False, True)])
def test_only_an_application_that_says_so_begins_where_its_request_was_read_and_only_once_that_is_whole(
    eager: bool, whole: bool
) -> None:
    class App:
        runs_eagerly = eager

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(isinstance(asyncio.current_task(), asyncio.Task))
            line: Line = scope["extensions"][LINE_EXTENSION]["line"]
            assert await line.body(100) == b"hi"
            await length(scope, receive, send)

    seen: list[bool] = []

    async def main() -> None:
        async with serving(App()) as server, connected(server.url) as client:
            head = request(b"POST", b"/", b"content-length: 2")
            for _ in range(2):  # of a head that is not known yet, and of one that is
                seen.clear()
                client.send(head + (b"hi" if whole else b""))
                if not whole:
                    await eventually(lambda: bool(seen))
                    client.send(b"hi")
                assert (await client.reply()).status == 200
                assert seen == [not (eager and whole)]

    run_bounded(main())
