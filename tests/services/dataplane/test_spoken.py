"""Which wire formats an engine speaks, found out without a token generated."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from adapters.engine_http.scripted_engine import eventually, run_bounded
from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Placement
from luftpause.ports.engines import EngineRequest, EngineUnreachableError, Header, Sink
from luftpause.services.dataplane.spoken import PATHS, Spoken

HERE = Endpoint(url="http://engine", api_key_env="KEY")


@dataclass
class Refusal:
    status: int
    headers: Sequence[Header] = ()
    closed: bool = False

    async def read(self) -> bytes:
        return b""

    async def pour(self, sink: Sink) -> None:
        raise AssertionError("nobody pours this answer")

    def finish(self) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True


@dataclass
class Engine:
    """Answers each path with a status; None does not answer, 0 cannot be reached."""

    statuses: dict[bytes, int | None]
    asked: list[EngineRequest] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    asleep: asyncio.Event | None = None

    async def send(self, endpoint: Endpoint, request: EngineRequest) -> Refusal:
        assert endpoint is HERE
        self.asked.append(request)
        if self.asleep is not None:
            await self.asleep.wait()
        status = self.statuses[request.path]
        if status is None:
            await asyncio.Event().wait()
        if not status:
            raise EngineUnreachableError("refused")
        self.refusals.append(Refusal(status))
        return self.refusals[-1]

    async def close(self) -> None:
        pass


def placed(engine: EngineKind = EngineKind.AUTO, dialects: tuple[str, ...] | None = None, life: int = 0) -> Placement:
    return Placement(replica=ReplicaId("a"), endpoint=HERE, why="", engine=engine, dialects=dialects, life=life)


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


def test_two_hundred_first_turns_ask_one_question() -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: 400, PATHS["responses"]: 404}, asleep=asyncio.Event())
        spoken = Spoken(engine)
        names = ["messages", "responses"] * 100
        turns = [asyncio.create_task(spoken.at(placed(), name)) for name in names]
        await eventually(lambda: len(engine.asked) == 2)
        assert engine.asleep is not None
        engine.asleep.set()
        assert await asyncio.gather(*turns) == [name == "messages" for name in names]
        assert len(engine.asked) == 2

    run_bounded(main())


def test_a_client_that_leaves_takes_the_answer_from_nobody() -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: 400}, asleep=asyncio.Event())
        spoken = Spoken(engine)
        leaves, stays = (asyncio.create_task(spoken.at(placed(), "messages")) for _ in range(2))
        await eventually(lambda: len(engine.asked) == 1)
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        assert leaves.cancelled()
        assert engine.asleep is not None
        engine.asleep.set()
        assert await stays
        assert await spoken.at(placed(), "messages")
        assert len(engine.asked) == 1

    run_bounded(main())


def test_no_turn_waits_longer_than_the_question_may_last() -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: None})
        spoken = Spoken(engine, ask_s=0.02)
        assert await asyncio.gather(*(spoken.at(placed(), "messages") for _ in range(20))) == [False] * 20
        assert len(engine.asked) == 1

    run_bounded(main())


@pytest.mark.parametrize("change", ["another life", "it failed", "nothing there"])
def test_an_engine_that_may_be_another_one_is_asked_again(change: str) -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: 400})
        spoken = Spoken(engine)
        assert await spoken.at(placed(life=1), "messages")
        engine.statuses[PATHS["messages"]] = 404
        if change == "it failed":
            spoken.forget(placed(life=1))
        elif change == "nothing there":
            spoken.answered(placed(life=1), "messages", 500)
            assert await spoken.at(placed(life=1), "messages"), "that tells nothing of what it speaks"
            spoken.answered(placed(life=1), "messages", 404)
        assert not await spoken.at(placed(life=2 if change == "another life" else 1), "messages")
        assert len(engine.asked) == 2

    run_bounded(main())


def test_whoever_closes_asks_no_more() -> None:
    async def main() -> None:
        engine = Engine({PATHS["messages"]: 400}, asleep=asyncio.Event())
        spoken = Spoken(engine)
        turn = asyncio.create_task(spoken.at(placed(), "messages"))
        await eventually(lambda: len(engine.asked) == 1)
        await spoken.close()
        await asyncio.gather(turn, return_exceptions=True)
        assert turn.cancelled()
        assert engine.refusals == []

    run_bounded(main())
