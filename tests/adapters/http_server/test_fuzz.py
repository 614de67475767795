"""Mutated requests on real sockets against our HTTP server, with three applications behind it."""

import asyncio
import contextlib
import logging
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import h11
import pytest
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, eventually
from adapters.http_server.http_fuzz import Ask, Trust, Wish, body_of, digest, honest, odd, pieces, wild
from luftpause.adapters.http_server.server import HttpServer
from luftpause.ports.asgi import LINE_EXTENSION, ClientLeftError, Receive, Scope, Send
from services.dataplane.door import open_door

BOUND_S = 15.0
WORKERS = 8
BIG = 3_000_000
Wishes = Callable[[random.Random], Wish]


@dataclass(slots=True)
class World:
    """A server, and what is asked of it."""

    server: HttpServer
    wishes: Wishes


def echo_wish(rng: random.Random) -> Wish:
    method = rng.choice((b"GET", b"POST", b"POST", b"HEAD", b"PUT", b"DELETE"))
    body = None if method in (b"GET", b"HEAD") and rng.random() < 0.8 else body_of(rng)
    match rng.randrange(9):
        case 0:
            return Wish(method=method, target=b"/early", body=body, status=413, answer=lambda _: b"no", early=True)
        case 1:
            status = rng.choice((204, 304))
            return Wish(method=method, target=b"/%d" % status, body=body, status=status, answer=lambda _: b"")
        case 2:
            return Wish(method=method, target=b"/line", body=body)
        case 3:
            return Wish(method=method, target=b"/slow-end", body=body)
        case 4 if rng.random() < 0.2:
            return Wish(method=method, target=b"/big", body=body, answer=lambda _: b"x" * BIG)
        case _:
            return Wish(method=method, target=rng.choice((b"/sized", b"/chunked?a=b")), body=body)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a digest of the body, framed as the path says."""
    path = scope["path"]
    assert path != "/smuggled", "a body became a request"
    if path == "/early":
        await _send(send, 413, b"no", more=False)
        return
    body = b""
    if path == "/line":
        try:
            body = await scope["extensions"][LINE_EXTENSION]["line"].body(10_000_000)
        except ClientLeftError:
            return
    else:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if not message["more_body"]:
                break
    status = int(path[1:]) if path in ("/204", "/304") else 200
    content = b"" if status != 200 else b"x" * BIG if path == "/big" else digest(body)
    await _send(send, status, content, more=path == "/slow-end", sized=path != "/chunked")


async def _send(send: Send, status: int, content: bytes, *, more: bool, sized: bool = True) -> None:
    headers = [(b"content-length", b"%d" % len(content))] if sized else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if more or not sized:
        for at in range(0, len(content), 1 + len(content) // 3):
            await send(
                {"type": "http.response.body", "body": content[at : at + 1 + len(content) // 3], "more_body": True}
            )
            await asyncio.sleep(0)
        for _ in range(20 if more else 0):
            await asyncio.sleep(0)
        content = b""
    await send({"type": "http.response.body", "body": content})


@contextlib.asynccontextmanager
async def echo_world() -> AsyncIterator[World]:
    server = HttpServer(echo, host="127.0.0.1", port=0)
    await server.start()
    try:
        yield World(server, echo_wish)
    finally:
        await server.close(grace_s=BOUND_S)


def chat_wish(rng: random.Random) -> Wish:
    if rng.random() < 0.3:
        return Wish(method=rng.choice((b"GET", b"HEAD")), target=b"/health", answer=lambda _: b'{"status":"ok"}')
    body = b'{"model":"m","messages":[{"role":"user","content":"%d"}]}' % rng.randrange(10**9)
    body += b" " * rng.choice((0, 0, 0, 100_000))
    return Wish(method=b"POST", target=b"/v1/chat/completions", headers=(b"content-type: application/json",), body=body)


AS_JSON = b"content-type: application/json\r\n"
"""A stream would have to say that it is whole."""


@contextlib.asynccontextmanager
async def dataplane_world() -> AsyncIterator[World]:
    async def script(visit: Visit) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                body = digest((await visit.request()).body)
                visit.send(answer(body) if body[-1] & 1 else chunked(body[:9], body[9:], headers=AS_JSON))

    async with open_door(ScriptedEngine(script)) as door:
        yield World(door.server, chat_wish)


def stream_wish(rng: random.Random) -> Wish:
    headers = (b"content-type: text/plain",)
    return Wish(method=b"POST", target=b"/stream", headers=headers, body=body_of(rng), answer=_event)


def _event(body: bytes) -> bytes:
    return b"data: %b\n\n" % digest(body)


@contextlib.asynccontextmanager
async def starlette_world() -> AsyncIterator[World]:
    async def stream(request: Request) -> StreamingResponse:
        body = await request.body()

        async def events() -> AsyncIterator[bytes]:
            assert request.state.ready
            yield _event(body)[:6]
            await asyncio.sleep(0)
            yield _event(body)[6:]

        return StreamingResponse(events(), media_type="text/event-stream")

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        yield {"ready": True}

    app = Starlette(routes=[Route("/stream", stream, methods=["POST"])], lifespan=lifespan)
    server = HttpServer(app, host="127.0.0.1", port=0, lifespan=True)
    await server.start()
    try:
        yield World(server, stream_wish)
    finally:
        await server.close(grace_s=BOUND_S)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    closes: bool


class Client:
    """One connection, which reads answers strictly."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._left = b""
        self.was_told_to_continue = False

    async def send(self, parts: list[bytes]) -> None:
        with contextlib.suppress(ConnectionError):
            for part in parts:
                self._writer.write(part)
                await self._writer.drain()
                await asyncio.sleep(0)

    async def answer(self, *, to_head: bool, leave_to_send: bool = False) -> Answer | None:
        """Return the next answer, None at the connection's end, or, if that is waited for, at a leave to send."""
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=BIG)
        parser.send(h11.Request(method="HEAD" if to_head else "GET", target="/", headers=[("host", "x")]))
        parser.send(h11.EndOfMessage())
        if self._left:
            parser.receive_data(self._left)
            self._left = b""
        status, closes, body = 0, False, []
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                data = await self._reader.read(1 << 16)
                if not data and not status and not parser.trailing_data[0]:
                    return None
                parser.receive_data(data)
            elif isinstance(event, h11.InformationalResponse):
                assert event.status_code == 100
                self.was_told_to_continue = True
                if leave_to_send:
                    self._left = parser.trailing_data[0]
                    return None
            elif isinstance(event, h11.Response):
                status = event.status_code
                assert status != 500
                closes = (b"connection", b"close") in event.headers
            elif isinstance(event, h11.Data):
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._left = parser.trailing_data[0]
                return Answer(status, b"".join(body), closes)
            else:
                raise AssertionError(f"{event} is not what may come now")

    async def ended(self) -> None:
        assert self._left == b""
        assert await self._reader.read(1) == b""

    def half_close(self) -> None:
        if not self._writer.transport.is_closing():
            with contextlib.suppress(OSError):
                self._writer.write_eof()

    def reset(self) -> None:
        taken: socket.socket = self._writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


def check(ask: Ask, found: Answer | None) -> None:
    """Check an answer to a request that must have one."""
    assert found is not None, f"no answer to {ask.head!r}"
    assert found.status == ask.wish.status, (ask.head, found)
    assert found.body == (b"" if ask.is_head else ask.wish.answer(ask.body)), (ask.head, found.body[:99])


async def one_after_the_other(rng: random.Random, world: World, client: Client) -> None:
    for _ in range(rng.randrange(1, 5)):
        ask = honest(rng, world.wishes(rng))
        found = None
        if ask.waits and rng.random() < 0.7:
            await client.send(pieces(rng, ask.head))
            found = await client.answer(to_head=ask.is_head, leave_to_send=True)
            if found is None:
                assert client.was_told_to_continue
                await client.send(pieces(rng, ask.rest))
        else:
            await client.send(pieces(rng, ask.raw))
        found = found or await client.answer(to_head=ask.is_head)
        check(ask, found)
        assert found is not None
        if found.closes:
            assert ask.closes or (ask.waits and ask.wish.early)
            await client.ended()
            return
        assert not ask.closes


async def all_at_once(rng: random.Random, world: World, client: Client) -> None:
    asks: list[Ask] = []
    while len(asks) < 5 and not (asks and asks[-1].closes):
        asks.append(honest(rng, world.wishes(rng)))
    sending = asyncio.create_task(client.send(pieces(rng, b"".join(ask.raw for ask in asks))))
    for number, ask in enumerate(asks):
        found = await client.answer(to_head=ask.is_head)
        if found is None:
            assert number > 0
            break
        check(ask, found)
        if found.closes:
            await client.ended()
            break
    await sending


async def mutated(rng: random.Random, world: World, client: Client) -> None:
    ask = (odd if rng.random() < 0.5 else wild)(rng, honest(rng, world.wishes(rng)))
    behind = honest(rng, world.wishes(rng)).raw if ask.trust is Trust.ODD and rng.random() < 0.3 else b""
    sending = asyncio.create_task(client.send(pieces(rng, ask.raw + behind)))
    if ask.trust is Trust.ODD:
        found = await client.answer(to_head=ask.is_head)
        as_wished = b"%b %b " % (ask.wish.method, ask.wish.target) in ask.head
        if found is not None and found.status == 200 and as_wished and not ask.is_head:
            assert found.body == ask.wish.answer(ask.body), ask.head
        await sending
    else:
        await sending
        for _ in range(10):
            await asyncio.sleep(0)
    client.half_close()
    with contextlib.suppress(ConnectionError, h11.RemoteProtocolError):
        while await client.answer(to_head=ask.is_head) is not None:
            pass


async def left(rng: random.Random, world: World, client: Client) -> None:
    ask = honest(rng, world.wishes(rng))
    if rng.random() < 0.3:
        ask = wild(rng, ask)
    raw = ask.raw
    await client.send(pieces(rng, raw[: rng.randrange(len(raw) + 1)] if rng.random() < 0.7 else raw))
    for _ in range(rng.choice((0, 1, 3, 9))):
        await asyncio.sleep(0)
    match rng.randrange(3):
        case 0:
            client.reset()
        case 1:
            client.half_close()
            with contextlib.suppress(ConnectionError, h11.RemoteProtocolError):
                while await client.answer(to_head=ask.is_head) is not None:
                    pass
        case _:
            await client.close()


COURSES = (one_after_the_other, one_after_the_other, all_at_once, mutated, mutated, left)


async def exchange(rng: random.Random, world: World) -> None:
    limit = rng.choice((1 << 10, 1 << 20))  # with a small one, the client reads slowly
    reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port, limit=limit)
    client = Client(reader, writer)
    try:
        await rng.choice(COURSES)(rng, world, client)
    finally:
        await client.close()


class Complaints(logging.Handler):
    """Keeps what must not be logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info or record.name.startswith(("asyncio", "luftpause.http")):
            self.found.append(self.format(record))


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    handler = Complaints()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


WORLDS = {"echo": echo_world, "dataplane": dataplane_world, "starlette": starlette_world}
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
COUNTS = [pytest.param(1700, id="short"), pytest.param(17_000, id="long", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("count", COUNTS)
def test_nothing_that_a_client_sends_breaks_the_server(
    name: str, loop: str, count: int, complaints: Complaints
) -> None:
    numbers = iter(range(count))

    async def work(world: World) -> None:
        for number in numbers:
            try:
                async with asyncio.timeout(BOUND_S):
                    await exchange(random.Random(f"{name}/{loop}/{number}"), world)
                assert complaints.found == []
            except BaseException as error:
                error.add_note(f"exchange {number} of {name} on {loop}")
                raise

    async def main() -> None:
        async with WORLDS[name]() as world:
            async with asyncio.TaskGroup() as workers:
                for _ in range(WORKERS):
                    workers.create_task(work(world))
            state = world.server._state
            assert state is not None
            await eventually(lambda: not state.connections and not state.tasks)
        assert complaints.found == []

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())
