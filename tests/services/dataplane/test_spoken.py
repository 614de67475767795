"""Which wire formats an engine speaks, found out without a token generated."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Placement
from luftpause.ports.engines import EngineRequest, EngineUnreachableError, Header, Take
from luftpause.services.dataplane.spoken import PATHS, Spoken

HERE = Endpoint(url="http://engine", api_key_env="KEY")


@dataclass
class Refusal:
    status: int
    headers: Sequence[Header] = ()
    closed: bool = False

    async def read(self) -> bytes:
        return b""

    async def pour(self, take: Take, room: Callable[[], Awaitable[None]]) -> None:
        raise AssertionError("nobody pours this answer")

    def close(self) -> None:
        self.closed = True


@dataclass
class Engine:
    """Answers each path with a status; None does not answer, 0 cannot be reached."""

    statuses: dict[bytes, int | None]
    asked: list[EngineRequest] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    async def send(self, endpoint: Endpoint, request: EngineRequest) -> Refusal:
        assert endpoint is HERE
        self.asked.append(request)
        status = self.statuses[request.path]
        if status is None:
            await asyncio.Event().wait()
        if not status:
            raise EngineUnreachableError("refused")
        self.refusals.append(Refusal(status))
        return self.refusals[-1]

    async def close(self) -> None:
        pass


def placed(engine: EngineKind = EngineKind.AUTO, dialects: tuple[str, ...] | None = None) -> Placement:
    return Placement(replica=ReplicaId("a"), endpoint=HERE, why="", engine=engine, dialects=dialects)


@pytest.mark.parametrize(
    ("status", "speaks", "is_remembered"),
    [
        (400, True, True),
        (422, True, True),
        (500, True, True),
        (404, False, True),
        (405, False, True),
        (501, False, True),
        (200, False, True),
        (401, False, False),
        (429, False, False),
        (503, False, False),
        (0, False, False),
        (None, False, False),
    ],
)
def test_an_engine_speaks_what_it_knows_a_path_for(status: int | None, speaks: bool, is_remembered: bool) -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: status})
        spoken = Spoken(engine, ask_s=0.02, unsure_s=0.0)
        assert await spoken.at(placed(), "messages") is speaks
        assert await spoken.at(placed(), "messages") is speaks
        assert len(engine.asked) == (1 if is_remembered else 2)
        assert {(request.method, request.body) for request in engine.asked} == {(b"POST", b"{}")}
        assert all(refusal.closed for refusal in engine.refusals)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("placement", "dialect", "speaks"),
    [
        (placed(dialects=("messages",)), "messages", True),
        (placed(dialects=("messages",)), "responses", False),
        (placed(dialects=("messages",)), "count_tokens", True),
        (placed(dialects=("chat",)), "count_tokens", False),
        (placed(EngineKind.LLAMA_CPP, ("responses",)), "responses", True),
        (placed(EngineKind.LLAMA_CPP), "responses", False),
        (placed(), "gemini", False),
    ],
)
def test_what_is_known_is_not_asked(placement: Placement, dialect: str, speaks: bool) -> None:
    engine = Engine({})
    assert asyncio.run(Spoken(engine).at(placement, dialect)) is speaks
    assert engine.asked == []


@pytest.mark.parametrize("status", [None, 0, 401, 503])
def test_an_engine_that_does_not_say_holds_up_one_turn_and_not_each(status: int | None) -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: status})
        spoken = Spoken(engine, ask_s=0.02)
        for _ in range(3):
            assert not await spoken.at(placed(), "messages")
        assert len(engine.asked) == 1

    asyncio.run(main())


def test_an_engine_that_speaks_messages_may_count_no_tokens() -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: 400, PATHS["count_tokens"]: 404})
        spoken = Spoken(engine)
        assert await spoken.at(placed(), "messages")
        assert not await spoken.at(placed(), "count_tokens")

    asyncio.run(main())


def test_an_engine_is_asked_again_after_a_while() -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: 404})
        spoken = Spoken(engine, memory_s=0.0)
        assert not await spoken.at(placed(), "messages")
        engine.statuses[PATHS["messages"]] = 400
        assert await spoken.at(placed(), "messages")

    asyncio.run(main())
