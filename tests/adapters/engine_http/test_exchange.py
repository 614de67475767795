"""How an answer is poured: handed over as it arrives, within bounds, to its last piece or to its early end."""

import asyncio

import pytest

from adapters.engine_http.scripted_engine import (
    ScriptedEngine,
    Visit,
    answer,
    at_rest,
    chunked,
    eventually,
    run_bounded,
)
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.engine_http.exchange import BODY_BYTES_HELD
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest

pytestmark = pytest.mark.usefixtures("each_loop")

POST = EngineRequest(method=b"POST", path=b"/", headers=(), body=b"{}")


class Pieces:
    """Takes pieces, as long as it has room."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ended = 0
        self.has_room = True
        self.freed = asyncio.Event()

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def take_piece(self, data: bytes, is_last: bool) -> bool:
        assert data or is_last
        assert not self.ended
        self.pieces.append(data)
        self.ended += is_last
        return self.has_room

    async def room(self) -> None:
        await self.freed.wait()
        self.freed.clear()


async def pour(engine: ScriptedEngine, sink: Pieces) -> None:
    engines = HttpEngines()
    exchange = await engines.send(Endpoint(url=engine.url), POST)
    try:
        await exchange.pour(sink)
    finally:
        exchange.close()
        await engines.close()


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (answer(b"whole"), b"whole"),
        (answer(b""), b""),
        (chunked(b"a", b"b"), b"ab"),
        (b"HTTP/1.1 200 OK\r\n\r\nto the close", b"to the close"),
    ],
)
@pytest.mark.parametrize("cut", [0, 1, 5])
def test_every_piece_is_handed_over_and_the_last_one_says_so(raw: bytes, body: bytes, cut: int) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(raw[: len(raw) - cut])
            await visit.writer.drain()
            await asyncio.sleep(0)
            visit.send(raw[len(raw) - cut :])
            await visit.close()

        sink = Pieces()
        async with ScriptedEngine(script).listening() as engine:
            await pour(engine, sink)
        assert (sink.body, sink.ended) == (body, 1)

    run_bounded(main())


def test_a_full_sink_is_spared_and_makes_the_engine_wait() -> None:
    piece = b"x" * 65536

    async def main() -> None:
        sent: list[int] = []

        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (1024 * len(piece)))
            for _ in range(1024):
                visit.send(piece)
                await visit.writer.drain()
                sent.append(len(piece))
            await visit.left()

        sink = Pieces()
        sink.has_room = False
        async with ScriptedEngine(script).listening() as engine:
            pouring = asyncio.create_task(pour(engine, sink))
            await eventually(lambda: bool(sink.pieces))
            await at_rest(lambda: len(sent))
            assert len(sink.pieces) == 1
            assert sum(sent) < 32 * 1024 * 1024
            sink.freed.set()
            await eventually(lambda: len(sink.pieces) == 2)
            assert len(sink.pieces[1]) <= BODY_BYTES_HELD + 256 * 1024
            sink.has_room = True
            sink.freed.set()
            await pouring
            assert (len(sink.body), sink.ended) == (1024 * len(piece), 1)

    run_bounded(main())


def test_an_answer_that_ends_early_is_handed_over_as_far_as_it_came() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(b"a", b"b", end=False))
            await visit.close()

        sink = Pieces()
        async with ScriptedEngine(script).listening() as engine:
            with pytest.raises(EngineBrokeError, match="before the end of its answer"):
                await pour(engine, sink)
        assert (sink.body, sink.ended) == (b"ab", 0)

    run_bounded(main())


def test_a_fault_of_who_takes_ends_the_pouring_and_is_raised_there() -> None:
    class Faulty(Pieces):
        def take_piece(self, data: bytes, is_last: bool) -> bool:
            super().take_piece(data, is_last)
            if b"bad" in data:
                raise ValueError("ours")
            return True

    async def main() -> None:
        go_on = asyncio.Event()

        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(b"good", end=False))
            await go_on.wait()
            visit.send(b"3\r\nbad\r\n")
            await visit.left()

        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # it tells of the fault as well
        sink = Faulty()
        async with ScriptedEngine(script).listening() as engine:
            pouring = asyncio.create_task(pour(engine, sink))
            await eventually(lambda: sink.body == b"good")
            go_on.set()
            with pytest.raises(ValueError, match="ours"):
                await pouring

    run_bounded(main())


@pytest.mark.parametrize("read", [True, False], ids=["read", "poured"])
def test_an_answer_may_be_taken_for_whole_before_its_end(read: bool) -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(chunked(b"all of it", end=False))
            await visit.left()

        sink, engines = Pieces(), HttpEngines()
        async with ScriptedEngine(script).listening() as engine:
            exchange = await engines.send(Endpoint(url=engine.url), POST)
            if read:
                assert await exchange.read() == b"all of it"
                asyncio.get_running_loop().call_soon(exchange.finish)
                assert await exchange.read() == b""
            else:
                pouring = asyncio.ensure_future(exchange.pour(sink))
                await eventually(lambda: sink.body == b"all of it")
                assert exchange.finish()
                await pouring
                assert (sink.pieces[-1], sink.ended) == (b"", 1)
            assert not exchange.finish()
            exchange.close()
            await engine.visits[0].closed.wait()
            await engines.close()

    run_bounded(main())


def test_one_that_is_over_or_was_given_up_is_not_made_whole() -> None:
    async def main() -> None:
        async def script(visit: Visit) -> None:
            await visit.request()
            visit.send(answer(b"whole") if raws.pop() else chunked(b"half", end=False))
            await visit.left()

        raws, engines = [False, True], HttpEngines()
        async with ScriptedEngine(script).listening() as engine:
            whole = await engines.send(Endpoint(url=engine.url), POST)
            assert not whole.finish()
            half = await engines.send(Endpoint(url=engine.url), POST)
            half.close()
            assert not half.finish()
            with pytest.raises(EngineBrokeError):
                await asyncio.gather(half.read(), half.read())  # what has come, and what has not
            whole.close()
            await engines.close()

    run_bounded(main())
