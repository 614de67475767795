"""Which wire formats an engine speaks, found out without a token generated."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineRequest, EngineUnreachableError, Header, Take
from luftpause.services.scheduler.spoken import PATHS, spoken_at

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


@pytest.mark.parametrize(
    ("messages", "responses", "spoken"),
    [
        (400, 422, ("messages", "responses")),
        (500, 404, ("messages",)),
        (405, 200, ("responses",)),
        (501, 404, ()),
        (401, 403, ()),
        (400, None, None),
        (0, 400, None),
        (429, 400, None),
        (400, 503, None),
    ],
)
def test_an_engine_speaks_what_it_knows_a_path_for(
    messages: int | None, responses: int | None, spoken: tuple[str, ...] | None
) -> None:
    engine = Engine({PATHS["messages"]: messages, PATHS["responses"]: responses})

    assert asyncio.run(spoken_at(engine, HERE, 0.02)) == spoken
    assert {(request.method, request.body) for request in engine.asked} == {(b"POST", b"{}")}
    assert all(refusal.closed for refusal in engine.refusals)
