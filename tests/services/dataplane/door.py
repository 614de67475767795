"""A dataplane on real sockets between a raw client and a scripted engine, with a scheduler that the test plays."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from adapters.engine_http.scripted_engine import ScriptedEngine, eventually
from adapters.raw_client import Reply, fetch, request
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.http_server.refusal import Refusals
from luftpause.adapters.http_server.server import HttpServer
from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import ModelName, PeerId, PrincipalId, ReplicaId, RunId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.replicas import Endpoint, EngineKind, Placement, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import (
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
    TurnsRenewed,
)
from luftpause.ports.crew import Crew
from luftpause.ports.scheduler import Recall, Ticket, TurnRefusedError
from luftpause.services.dataplane.app import Dataplane
from luftpause.services.dataplane.headers import refusal_headers
from luftpause.services.dataplane.routes import error_at
from luftpause.services.dataplane.settings import DataplaneSettings

CHAT = b"/v1/chat/completions"
JSON = b"content-type: application/json"
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
RUN = b"x-luftpause-run-id"
ENDINGS = (TurnFinished, TurnFailed, TurnAbandoned, TurnReturned)


class PlayedScheduler:
    """A SchedulerLink that places every turn for the model "m" at once, unless told to hold."""

    def __init__(self) -> None:
        self.endpoint = Endpoint(url="http://127.0.0.1:1")
        self.engine_kind = EngineKind.AUTO
        self.restore = ""
        self.charge: Charge | None = None
        self.dialects: tuple[str, ...] | None = ()
        self.hold = False
        self.away: asyncio.Event | None = None
        self.breaks_with: Exception | None = None
        self.offers: list[TurnOffer] = []
        self.reports: list[TurnReport] = []
        self.tickets: list[Ticket] = []
        self.ended: list[RunId] = []
        self.recall: Recall = lambda turn: None
        self.on_report: Callable[[TurnReport], None] = lambda report: None

    def place(self, at: int = -1) -> None:
        """Place a held turn; a request that names no model means "m"."""
        offer = self.offers[at]
        self.tickets[at].placement.set_result(
            Placement(
                replica=ReplicaId("a"),
                endpoint=self.endpoint,
                why="room",
                engine=self.engine_kind,
                dialects=self.dialects,
                kind=offer.kind or ReplicaKind.GENERATIVE,
                model=offer.model or ModelName("m"),
                slot=2 if self.restore else None,
                restore=self.restore,
                charge=self.charge,
            )
        )

    async def admit(self, offer: TurnOffer) -> Ticket:
        self.offers.append(offer)
        if self.away is not None:
            await self.away.wait()
        if self.breaks_with is not None:
            raise self.breaks_with
        if offer.model not in ("m", ""):
            message = f"no Generative replica serves model '{offer.model}'"
            raise TurnRefusedError(Refusal(reason=RefusalReason.UNKNOWN_MODEL, message=message))
        run = offer.keys.run or RunId(f"run_minted_{len(self.offers)}")
        self.tickets.append(Ticket(run, asyncio.get_running_loop().create_future(), offer.keys.parent))
        if not self.hold:
            self.place()
        return self.tickets[-1]

    def report(self, report: TurnReport) -> None:
        self.reports.append(report)
        self.on_report(report)

    def attend(self, peer: PeerId, recall: Recall) -> None:
        self.recall = recall

    async def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        if self.away is not None:
            await self.away.wait()
        self.ended.append(run)
        return run == "known"

    async def models(self) -> Sequence[ModelName]:
        if self.away is not None:
            await self.away.wait()
        return [ModelName("a"), ModelName("m")]

    async def add_replica(self, spec: ReplicaSpec) -> None:
        raise AssertionError("a dataplane declares no replicas")

    async def remove_replica(self, replica: ReplicaId) -> None:
        raise AssertionError("a dataplane removes no replicas")

    @property
    def kinds(self) -> list[str]:
        """Names of the reports, renewals left out, in order."""
        return [type(report).__name__ for report in self.reports if not isinstance(report, TurnsRenewed)]

    @property
    def endings(self) -> list[TurnReport]:
        return [report for report in self.reports if isinstance(report, ENDINGS)]


@dataclass(slots=True)
class Door:
    """Everything a test touches."""

    url: str
    dataplane: Dataplane
    scheduler: PlayedScheduler
    engine: ScriptedEngine | None
    server: HttpServer

    @property
    def client_keeps_us_waiting(self) -> bool:
        """Whether some client does not read what it was sent."""
        assert self.server._state is not None
        return any(each.writable is not None for each in self.server._state.connections)

    async def chat(self, *headers: bytes, body: bytes = BODY) -> Reply:
        """Send a chat on a connection of its own and return the whole answer."""
        return await fetch(self.url, b"POST", CHAT, JSON, *headers, body=body)

    async def still_answers(self) -> None:
        """Check that the door works and that no turn is left open."""
        assert (await fetch(self.url, b"GET", b"/health")).status == 200
        await eventually(lambda: len(self.dataplane.open_turns) == 0)


def chat_bytes(*headers: bytes, body: bytes = BODY) -> bytes:
    """Return a chat request's bytes."""
    return request(b"POST", CHAT, JSON, *headers, body=body)


@contextlib.asynccontextmanager
async def open_door(
    engine: ScriptedEngine | None = None, *, settings: DataplaneSettings | None = None, crew: Crew | None = None
) -> AsyncIterator[Door]:
    """Start everything; at the end check that every turn that was opened has ended once."""
    scheduler = PlayedScheduler()
    async with contextlib.AsyncExitStack() as stack:
        if engine is not None:
            await stack.enter_async_context(engine.listening())
            scheduler.endpoint = Endpoint(url=engine.url)
        engines = HttpEngines()
        dataplane = Dataplane(scheduler, engines, settings or DataplaneSettings(), crew=crew)
        refusals = Refusals(headers=refusal_headers, body=error_at)
        server = HttpServer(dataplane, host="127.0.0.1", port=0, refusals=refusals)
        await server.start()
        await dataplane.start()
        try:
            yield Door(server.url, dataplane, scheduler, engine, server)
            await eventually(lambda: len(dataplane.open_turns) == 0)
        finally:
            await server.close(grace_s=0.0)
            await dataplane.close()
            await engines.close()
        ended = [report.turn for report in scheduler.endings if not isinstance(report, TurnsRenewed)]
        assert len(ended) == len(set(ended)), "a turn ended twice"
        assert set(ended) <= {offer.turn for offer in scheduler.offers}
