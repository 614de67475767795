"""What a client of the link must be able to tell a scheduler that forgot it: sans-IO, one owner, time passed in.

It is kept from what passes through: offers, placements, reports, declarations. It does not know the connection, and
it does not decide what is sent when.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from luftpause.core.model.ids import Instant, Mark, ModelName, PeerId, ReplicaId, RunId, ToolName, TurnId
from luftpause.core.model.marks import call_marks, named_marks
from luftpause.core.model.replicas import Placement, ReplicaKind, ReplicaSpec
from luftpause.core.model.tool_names import TOOLS_MAX
from luftpause.core.model.turns import TurnOffer, TurnShape
from luftpause.core.scheduling.events import (
    AnswerGrew,
    FirstTokenSeen,
    KnownRun,
    OpenTurn,
    PeerResynced,
    RunPhase,
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
)

RUNS_MAX: Final = 65_536
"""Past it the runs that stirred longest ago are dropped first. A run counts once for each model that it asks."""


MARKS_KEPT: Final = 16
"""Marks kept of each run besides those that its requests name, the newest; more only if its last turn has more."""

MARKS_MAX: Final = 256
"""More marks of one turn than this are not kept: one is enough to recognise a run by."""


@dataclass(slots=True)
class _Turn:
    offer: TurnOffer
    offered: Instant
    run: RunId | None = None
    parent: RunId | None = None
    placement: Placement | None = None
    before: "_Run | None" = None
    """How its run stood when it was placed, if it was at rest then."""

    @property
    def in_run(self) -> bool:
        """Whether it changes its run, once it has its place."""
        is_generative = self.placement is not None and self.placement.kind is ReplicaKind.GENERATIVE
        return is_generative and self.offer.shape.in_run

    @property
    def model(self) -> ModelName:
        """The model that it was taken for, once it has its place."""
        return (self.placement.model if self.placement is not None else None) or self.offer.model


_Part = tuple[RunId, ModelName]


@dataclass(slots=True)
class _Run:
    """A run with one of its models: home, phase and pause are the pair's."""

    last: TurnOffer
    replica: ReplicaId
    phase: RunPhase
    in_flight: int
    ended: Instant
    parent: RunId | None = None
    marks: tuple[Mark, ...] = ()
    tools: tuple[ToolName, ...] = ()


class Ledger:
    """Open turns, known runs and declared replicas of one peer.

    A run whose last turn ended more than `run_idle_s` ago is not told of: the scheduler would forget it at once.
    """

    def __init__(self, peer: PeerId, *, run_idle_s: float) -> None:
        self._peer = peer
        self._run_idle_s = run_idle_s
        self._turns: dict[TurnId, _Turn] = {}
        self._runs: OrderedDict[_Part, _Run] = OrderedDict()  # the one that stirred longest ago comes first
        self._models_of: dict[RunId, set[ModelName]] = {}
        self._replicas: dict[ReplicaId, ReplicaSpec] = {}

    def offered(self, offer: TurnOffer, now: Instant) -> None:
        """Take note of a turn; an id that is open already changes nothing."""
        self._turns.setdefault(offer.turn, _Turn(offer, now))

    def accepted(self, turn: TurnId, run: RunId, parent: RunId | None = None) -> None:
        """Take note of the run that was promised for a turn, and of its parent; the first promise stands."""
        known = self._turns.get(turn)
        if known is not None and known.run is None:
            known.run, known.parent = run, parent

    def placed(self, turn: TurnId, placement: Placement, now: Instant) -> None:
        """Take note of where an accepted turn runs; the first placement stands."""
        known = self._turns.get(turn)
        if known is None or known.run is None or known.placement is not None:
            return
        known.placement = placement
        if not known.in_run:
            return
        part = known.run, known.model
        run = self._runs.get(part)
        if run is not None and known.offer.shape is TurnShape.ASIDE and run.phase is RunPhase.PAUSED:
            known.offer = replace(known.offer, shape=TurnShape.ALONE)
            return
        if run is None:
            run = self._runs[part] = _Run(known.offer, placement.replica, RunPhase.GENERATING, 1, now)
            self._models_of.setdefault(known.run, set()).add(known.model)
        else:
            known.before = replace(run) if run.in_flight == 0 else None
            run.last, run.replica, run.phase = known.offer, placement.replica, RunPhase.GENERATING
            run.in_flight += 1
        run.parent = known.parent or run.parent
        self._runs.move_to_end(part)
        self._drop_old(now)

    def withdrawn(self, turn: TurnId) -> None:
        """Forget a turn that has no place: it was refused, or its client left."""
        known = self._turns.get(turn)
        if known is not None and known.placement is None:
            del self._turns[turn]

    def reported(self, report: TurnReport, now: Instant) -> None:
        """Take note of a report, made at `now`. Reports about turns without a place change nothing."""
        match report:
            case TurnFinished(turn=turn, tool_calls=calls, marks=said, tools=tools):
                marks = (*said, *call_marks(calls))
                self._ended(turn, RunPhase.PAUSED if calls else RunPhase.IDLE, now, marks=marks, tools=tools)
            case TurnFailed(turn=turn) | TurnAbandoned(turn=turn):
                self._ended(turn, RunPhase.IDLE, now)
            case TurnReturned(turn=turn):
                self._returned(turn, now)
            case AnswerGrew(turn=turn, reply_bytes=reply_bytes):
                self._grew(turn, reply_bytes)
            case FirstTokenSeen() | TurnStays() | TurnsRenewed():
                pass
            case _:
                assert_never(report)

    def run_ended(self, run: RunId) -> None:
        """Forget a run; its open turns stay until they end."""
        for model in self._models_of.pop(run, ()):
            del self._runs[run, model]

    def declared(self, spec: ReplicaSpec) -> None:
        """Take note of a declared replica."""
        self._replicas[spec.replica] = spec

    def removed(self, replica: ReplicaId) -> None:
        """Forget a declared replica."""
        self._replicas.pop(replica, None)

    def is_placed(self, turn: TurnId) -> bool:
        """Whether the turn is open and has its place."""
        known = self._turns.get(turn)
        return known is not None and known.placement is not None

    def held_offer(self, turn: TurnId, now: Instant) -> TurnOffer | None:
        """The offer to make again for a turn without a place, None for all others.

        It names the run that was promised and its parent, and how long it has waited.
        """
        known = self._turns.get(turn)
        if known is None or known.placement is not None:
            return None
        age_s = known.offer.age_s + max(0.0, now - known.offered)
        keys = known.offer.keys
        if known.run is not None:
            keys = replace(keys, run=known.run, parent=known.parent or keys.parent)
        return replace(known.offer, keys=keys, age_s=age_s)

    def replicas(self) -> Sequence[ReplicaSpec]:
        """All declared replicas, in the order of their first declaration."""
        return tuple(self._replicas.values())

    def resync(self, now: Instant) -> PeerResynced:
        """Everything a scheduler that knows nothing must be told before it admits anything."""
        self._drop_old(now)
        turns = tuple(
            OpenTurn(
                turn=turn,
                run=known.run,
                replica=known.placement.replica,
                model=known.model,
                kind=known.placement.kind,
                service_class=known.offer.service_class,
                caller=known.offer.caller,
                principal=known.offer.principal,
                shape=known.offer.shape,
                parent=known.parent,
                trace=known.offer.trace,
                charge=known.placement.charge,
                reply_max=known.offer.reply_max,
            )
            for turn, known in self._turns.items()
            if known.run is not None and known.placement is not None
        )
        runs = tuple(
            KnownRun(
                run=name,
                model=model,
                phase=run.phase,
                replica=run.replica,
                service_class=run.last.service_class,
                caller=run.last.caller,
                principal=run.last.principal,
                age_s=max(0.0, now - run.ended) if run.phase is not RunPhase.GENERATING else 0.0,
                marks=(*named_marks(run.last.keys), *run.marks),
                tools=run.tools if run.phase is RunPhase.PAUSED else (),
                parent=run.parent,
            )
            for (name, model), run in self._runs.items()
        )
        return PeerResynced(peer=self._peer, turns=turns, runs=runs)

    def _ended(
        self,
        turn: TurnId,
        phase: RunPhase,
        now: Instant,
        *,
        marks: tuple[Mark, ...] = (),
        tools: tuple[ToolName, ...] = (),
    ) -> None:
        known = self._turns.get(turn)
        if known is None or known.run is None or known.placement is None:
            return
        del self._turns[turn]
        part = known.run, known.model
        run = self._runs.get(part) if known.in_run else None
        if run is None:
            return
        run.in_flight = max(0, run.in_flight - 1)
        run.ended = now
        run.marks = (*run.marks, *marks[:MARKS_MAX])[-max(MARKS_KEPT, min(len(marks), MARKS_MAX)) :]
        if known.offer.shape is TurnShape.ASIDE and run.tools:  # one that ended meanwhile is out on these
            phase = RunPhase.PAUSED
        else:
            run.tools = tools[:TOOLS_MAX]
        if run.in_flight == 0:
            run.phase = phase
        self._runs.move_to_end(part)
        self._drop_old(now)

    def _grew(self, turn: TurnId, reply_bytes: int) -> None:
        """Take note of what a turn is charged with since its answer grew."""
        known = self._turns.get(turn)
        placement = None if known is None else known.placement
        if known is not None and placement is not None and placement.charge is not None:
            charge = placement.charge.grown(reply_bytes, known.offer.reply_max)
            known.placement = replace(placement, charge=charge)

    def _returned(self, turn: TurnId, now: Instant) -> None:
        """Forget a turn that came back: its run is at rest as it was."""
        known = self._turns.get(turn)
        before = None if known is None else known.before
        self._ended(turn, RunPhase.IDLE, now)
        run = None if known is None or known.run is None else self._runs.get((known.run, known.model))
        if run is not None and before is not None and run.in_flight == 0:
            run.phase, run.marks, run.tools = before.phase, before.marks, before.tools

    def _drop_old(self, now: Instant) -> None:
        # Only the front is looked at: a generating run there shields those behind it until it ends, which costs a
        # few entries for a while and saves a scan per report.
        while self._runs:
            part, run = next(iter(self._runs.items()))
            if run.in_flight == 0 and (len(self._runs) > RUNS_MAX or now - run.ended > self._run_idle_s):
                self._drop(part)
            else:
                return

    def _drop(self, part: _Part) -> None:
        name, model = part
        del self._runs[part]
        models = self._models_of[name]
        models.discard(model)
        if not models:
            del self._models_of[name]
