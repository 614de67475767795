"""A scheduler small enough to be obviously right: places by model, can hold, refuses unknown models, remembers ids."""

import asyncio
from collections.abc import Iterable, Sequence

from luftpause.core.model.ids import Mark, ModelName, PeerId, PrincipalId, ReplicaId, RunId, ToolCallId, TurnId
from luftpause.core.model.marks import call_marks
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.replicas import Placement, ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import (
    PeerResynced,
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
)
from luftpause.ports.scheduler import Ticket, TurnRefusedError


class FakeDesk:
    """A `SchedulerDesk`. `holding` keeps new turns in the queue until `release`."""

    def __init__(self, specs: Iterable[ReplicaSpec], *, holding: bool = False) -> None:
        self.holding = holding
        self.placed: dict[TurnId, PeerId] = {}
        self.held: dict[TurnId, TurnOffer] = {}
        self.runs: dict[RunId, PrincipalId] = {}
        self._specs = {spec.replica: spec for spec in specs}
        self._tickets: dict[TurnId, Ticket] = {}
        self._run_of: dict[Mark, RunId] = {}
        self._minted = 0

    def release(self) -> None:
        self.holding = False
        for offer in tuple(self.held.values()):
            self._place(offer)

    def admit(self, offer: TurnOffer) -> Ticket:
        if offer.turn in self._tickets:
            return self._tickets[offer.turn]
        if self._spec(offer.model) is None:
            raise TurnRefusedError(Refusal(reason=RefusalReason.UNKNOWN_MODEL, message=f"no model {offer.model!r}"))
        (mark,) = call_marks([offer.keys.parent_call or ToolCallId("")])
        ticket = Ticket(self._run(offer), asyncio.get_running_loop().create_future(), self._run_of.get(mark))
        self._tickets[offer.turn] = ticket
        self.runs[ticket.run] = offer.principal
        self.held[offer.turn] = offer
        if not self.holding:
            self._place(offer)
        return ticket

    def lacks_word(self, offer: TurnOffer) -> bool:
        marks = call_marks(offer.keys.tool_calls)
        return offer.keys.run is None and bool(marks) and not any(mark in self._run_of for mark in marks)

    def report(self, report: TurnReport) -> None:
        if isinstance(report, TurnFinished | TurnFailed | TurnAbandoned):
            ticket = self._tickets.get(report.turn)
            if isinstance(report, TurnFinished) and ticket is not None:
                self._run_of.update(dict.fromkeys(call_marks(report.tool_calls), ticket.run))
            self._over(report.turn)

    def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        if self.runs.get(run) != principal:
            return False
        del self.runs[run]
        return True

    def models(self) -> Sequence[ModelName]:
        return sorted({model for spec in self._specs.values() for model in spec.models})

    def resync(self, report: PeerResynced) -> None:
        named = {turn.turn for turn in report.turns}
        for turn in [turn for turn, offer in self.held.items() if offer.peer == report.peer]:
            self._over(turn)
        for turn in [turn for turn, peer in self.placed.items() if peer == report.peer and turn not in named]:
            self._over(turn)
        for open_turn in report.turns:
            self.placed[open_turn.turn] = report.peer
            self.runs[open_turn.run] = open_turn.principal
            if open_turn.turn not in self._tickets:
                future: asyncio.Future[Placement] = asyncio.get_running_loop().create_future()
                self._tickets[open_turn.turn] = Ticket(open_turn.run, future)
        for run in report.runs:
            self.runs[run.run] = run.principal
            self._run_of.update(dict.fromkeys(run.marks, run.run))

    def peer_lost(self, peer: PeerId) -> None:
        self.resync(PeerResynced(peer=peer, turns=(), runs=()))

    def add_replica(self, spec: ReplicaSpec) -> None:
        self._specs[spec.replica] = spec

    def remove_replica(self, replica: ReplicaId) -> None:
        self._specs.pop(replica, None)

    def _over(self, turn: TurnId) -> None:
        self.placed.pop(turn, None)
        self.held.pop(turn, None)
        ticket = self._tickets.pop(turn, None)
        if ticket is not None:
            ticket.placement.cancel()

    def _place(self, offer: TurnOffer) -> None:
        spec = self._spec(offer.model)
        assert spec is not None
        del self.held[offer.turn]
        self.placed[offer.turn] = offer.peer
        placement = self._tickets[offer.turn].placement
        if not placement.done():
            placement.set_result(Placement(replica=spec.replica, endpoint=spec.endpoint, why="it serves the model"))

    def _spec(self, model: ModelName) -> ReplicaSpec | None:
        return next((spec for spec in self._specs.values() if model in spec.models), None)

    def _run(self, offer: TurnOffer) -> RunId:
        if offer.keys.run is not None:
            return offer.keys.run
        for tool_call in call_marks(offer.keys.tool_calls):
            if tool_call in self._run_of:
                return self._run_of[tool_call]
        self._minted += 1
        return RunId(f"run-{self._minted}-{id(self):x}")
