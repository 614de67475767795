"""Mutated requests and mutated answers through a whole door at sockets: no 500 of ours, no hang, no slot left.

What is behind the dialects by themselves: `core/dialects/test_fuzz.py`. A failure names its seed:
`random.Random("NAME/NUMBER")`.
"""

import asyncio
import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, eventually
from adapters.raw_client import connected, request
from core.dialects import test_fuzz as pure
from core.dialects.mutants import cut, mutated, mutated_stream, scratched
from luftpause.core.model.replicas import EngineKind
from luftpause.services.dataplane.settings import DataplaneSettings
from services.dataplane.door import JSON, Door, open_door

BOUND_S = 10.0
WORKERS = 8
COUNTS = [pytest.param(150, id="short"), pytest.param(1500, id="long", marks=pytest.mark.nightly)]
SETTINGS = DataplaneSettings(keepalive_after_s=0.02, keepalive_s=0.02)


@dataclass(frozen=True)
class Road:
    """How requests of one kind come in, and what engines that speak it say."""

    asking: pure.Asking
    streams: Sequence[bytes] = ()
    answers: Sequence[bytes] = ()


ROADS = {name: Road(asking) for name, asking in pure.ASKINGS.items()}
ROADS["messages"] = Road(pure.ASKINGS["messages"], pure.MESSAGES_STREAMS, pure.MESSAGES_ANSWERS)
ROADS["responses"] = Road(pure.ASKINGS["responses"], pure.RESPONSES_STREAMS, pure.RESPONSES_ANSWERS)


class Garbage:
    """An engine whose answers nearly are some: each is made from the seed that its request names."""

    def __init__(self, road: Road) -> None:
        self._road = road
        self._asked: dict[str, int] = {}

    async def __call__(self, visit: Visit) -> None:
        try:
            while True:
                received = await visit.request()
                seed = (received.header(b"x-seed") or b"a question").decode()
                before = self._asked[seed] = self._asked.get(seed, -1) + 1  # a busy engine is asked again
                rng = random.Random(f"{seed}{' again' * before}")
                await self._answer(visit, rng, is_chat=b"/chat/" in received.line)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    async def _answer(self, visit: Visit, rng: random.Random, *, is_chat: bool) -> None:
        streams = pure.CHAT_STREAMS if is_chat or not self._road.streams else self._road.streams
        answers = pure.CHAT_ANSWERS if is_chat or not self._road.answers else self._road.answers
        kind = rng.choice((b"application/json", b"text/event-stream", b"text/event-stream", b"text/html"))
        if kind == b"text/event-stream":
            body = mutated_stream(rng, rng.choice(streams), pure.STREAMS)
        else:
            body = mutated(rng, rng.choice(answers), answers)
        status = rng.choice((b"200 OK",) * 6 + (b"400 No", b"404 No", b"429 Wait", b"500 Oh", b"503 Wait"))
        later = rng.choice((b"", b"retry-after: 0\r\n", b"retry-after: soon\r\n"))
        headers = b"content-type: " + kind + b"\r\n" + later
        if rng.random() < 0.2:
            whole = answer(body, status=status, headers=headers)
        else:
            pieces = [piece for piece in cut(rng, body) if piece]
            whole = chunked(*pieces, headers=headers).replace(b"200 OK", status, 1)
        damaged = rng.random() < 0.2
        if damaged:
            whole = scratched(rng, whole)
        for piece in cut(rng, whole):
            visit.send(piece)
            await asyncio.sleep(0)
        if damaged:  # else whoever waits for the rest of it waits for ever, and rightly
            await visit.close()


class Complaints(logging.Handler):
    """Keeps what must not be logged: faults of ours."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    handler = Complaints()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


async def exchange(door: Door, road: Road, seed: str) -> None:
    """Ask once; leave early now and then. Whatever comes is an answer, and none that tells of a fault of ours."""
    rng = random.Random(seed)
    body = mutated(rng, rng.choice(road.asking.samples), pure.OTHERS)
    path = rng.choice(road.asking.paths).encode() + rng.choice((b"", b"", b"?alt=sse", b"?beta=true"))
    async with connected(door.url) as client:
        client.send(request(b"POST", path, JSON, b"x-seed: " + seed.encode(), body=body))
        if rng.random() < 0.1:
            await asyncio.sleep(rng.choice((0, 0, 0.001)))
            return
        reply = await client.reply()
    assert reply.status != 500 or b"the dataplane failed" not in reply.body, reply.body
    assert 200 <= reply.status < 600


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("speaks", ["chat", "its own", "unsaid"])
@pytest.mark.parametrize("name", ROADS)
def test_nothing_that_is_asked_or_answered_breaks_the_door(
    name: str, speaks: str, count: int, complaints: Complaints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luftpause.services.dataplane.endings.BUSY_PAUSE_S", 0.001)
    road, numbers = ROADS[name], iter(range(count))

    async def work(door: Door) -> None:
        for number in numbers:
            seed = f"{name}/{speaks}/{number}"
            try:
                async with asyncio.timeout(BOUND_S):
                    await exchange(door, road, seed)
                assert complaints.found == []
            except BaseException as error:
                error.add_note(f'seed: random.Random("{seed}")')
                raise

    async def main() -> None:
        async with open_door(ScriptedEngine(Garbage(road)), settings=SETTINGS) as door:
            door.scheduler.dialects = {"chat": (), "its own": ("messages", "responses"), "unsaid": None}[speaks]
            door.scheduler.engine_kind = EngineKind.LLAMA_CPP if speaks == "chat" else EngineKind.AUTO
            async with asyncio.TaskGroup() as workers:
                for _ in range(WORKERS):
                    workers.create_task(work(door))
            await eventually(lambda: len(door.dataplane.open_turns) == 0)
            assert len(door.scheduler.endings) <= len(door.scheduler.offers)
            await door.still_answers()
        assert complaints.found == []

    asyncio.run(main())
