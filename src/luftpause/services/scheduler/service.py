"""The scheduler's shell: the single owner of the state.

Takes events in one at a time: decides, swaps the state, performs each order. Performing never waits: it settles
futures. Knows no policy; what it knows of time is one timer, set to the next deadline.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, assert_never

from luftpause.core.model.ids import Instant, ModelName, PeerId, PrincipalId, ReplicaId, RunId, TurnId
from luftpause.core.model.marks import call_marks, named_marks
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RecallTurn, RefuseTurn
from luftpause.core.scheduling.decide import decide, next_deadline
from luftpause.core.scheduling.events import (
    Event,
    MemoryRestored,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    ReplicaRemoved,
    RunEnded,
    TurnAbandoned,
    TurnArrived,
    TurnFailed,
    TurnFinished,
    TurnReport,
    WokeUp,
)
from luftpause.core.scheduling.known import found, known
from luftpause.core.scheduling.parts import parts_of
from luftpause.core.scheduling.reasons import explain
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel
from luftpause.core.scheduling.routing import NAME_CHARS_MAX, Services, routed_service
from luftpause.core.scheduling.services import offered
from luftpause.core.scheduling.state import HeldTurn, Service, State, Turn, empty_state
from luftpause.core.scheduling.working_set.replies import is_cut
from luftpause.ports.scheduler import Recall, SchedulerDesk, Ticket, TurnRefusedError
from luftpause.services.scheduler.audience import Audience, ReplicaListener
from luftpause.services.scheduler.identity import RunIdentity
from luftpause.services.scheduler.launchers import Launchers
from luftpause.services.scheduler.metrics import SchedulerMetrics
from luftpause.services.scheduler.placements import placed_fields, placement_of
from luftpause.services.scheduler.recalls import Recalls
from luftpause.services.scheduler.settings import SchedulerSettings
from luftpause.services.scheduler.tally import DecisionTally
from luftpause.services.scheduler.tickets import Tickets
from luftpause.services.scheduler.witness import Witness
from luftpause.telemetry.pauses import ShortPauses

REARM_S_MIN: Final = 0.05
"""Two wake-ups are at least this far apart, so that a deadline that cannot be met never spins."""

_SECONDS: Final = time.perf_counter
_log = logging.getLogger("luftpause.scheduler")


class SchedulerService(SchedulerDesk):
    """All calls belong on one event loop and return at once."""

    def __init__(self, settings: SchedulerSettings, witnesses: Sequence[Witness] = ()) -> None:
        self.settings = settings
        self._witnesses = tuple(witnesses)
        self._state = empty_state(settings.limits)
        self._identity = RunIdentity(memory_s=settings.tool_call_memory_s, find=lambda run: parts_of(self._state, run))
        self._tally = DecisionTally()
        self._pauses = ShortPauses(lambda: bool(self._state.turns or self._state.held))
        self._metrics = SchedulerMetrics(self._tally, lambda: self._state, self.now)
        self._mailbox: deque[Event] = deque()
        self._busy = False
        self._tickets = Tickets()
        self._recalls = Recalls()
        self.launchers = Launchers(self._submit)  # who starts engines for us
        self._audience = Audience()
        self._timer: asyncio.TimerHandle | None = None
        self._clock: Callable[[], float] | None = None
        self._started_at: float | None = None
        self._tells_placements = False
        self._closed = False

    @property
    def state(self) -> State:
        """The state of the moment, to look at: it never changes, the next one is another."""
        return self._state

    @property
    def metrics(self) -> SchedulerMetrics:
        """What was counted so far."""
        return self._metrics

    @property
    def uptime_s(self) -> float:
        """Seconds since the start, 0 before it."""
        return 0.0 if self._started_at is None else self.now() - self._started_at

    def now(self) -> Instant:
        """Return the present on the clock that the state's instants are told in."""
        clock = self._clock
        if clock is None:
            clock = self._clock = asyncio.get_running_loop().time  # asking for the loop each time costs a system call
        return Instant(clock())

    def start(self) -> None:
        """Begin. Needs the running event loop."""
        self._started_at = self.now()
        self._pauses.watch()
        self._tells_placements = _log.isEnabledFor(logging.DEBUG)  # asking at each turn runs in Python

    def close(self) -> None:
        """Refuse every held turn, and all that come later. Calling it again changes nothing."""
        self._closed = True
        self._pauses.close()
        self._disarm()
        self._tickets.refuse_all(_SHUTTING_DOWN)

    def watch(self, witness: Witness) -> None:
        """Tell a witness of every decision from now on."""
        self._witnesses = (*self._witnesses, witness)

    def listen(self, listener: ReplicaListener) -> None:
        """Tell a listener of all replicas declared now, and of every change from now on."""
        self._audience.join(listener, self._state)

    def admit(self, offer: TurnOffer) -> Ticket:
        """See `SchedulerDesk.admit`."""
        if self._closed:
            raise TurnRefusedError(_SHUTTING_DOWN)
        known = self._known(offer.turn)
        waiting = self._tickets.waiting(offer.turn)
        if waiting is not None:
            self._submit(self._arrival(offer, waiting.run, known))
            return waiting
        now = self.now()
        run = self._run_of(offer, known, now)
        arrival = self._arrival(offer, run, known)
        ticket = self._tickets.write(offer.turn, run, arrival.parent)
        self._submit(arrival)
        if ticket.placed is None and ticket.is_settled:
            error = ticket.placement.exception()
            if error is not None:
                raise error
        self._identity.claim(run, offer.principal, now)
        self._identity.learn(run, named_marks(offer.keys), now)
        return ticket

    def lacks_word(self, offer: TurnOffer) -> bool:
        """See `SchedulerDesk.lacks_word`."""
        return self._identity.lacks_word(offer.principal, offer.keys) and self._known(offer.turn) is None

    def report(self, report: TurnReport) -> None:
        """See `SchedulerDesk.report`."""
        if isinstance(report, TurnFinished) and report.usage is not None:
            running = known(self._state.turns, report.turn)
            if running is not None:
                self._tally.used(running.arrival.service_class, report.usage, is_cut=is_cut(report))
        if isinstance(report, TurnFinished) and (report.tool_calls or report.marks):
            turn = self._state.turns.get(report.turn) or self._state.lapsed.get(report.turn)
            if turn is not None and turn.in_run:
                marks = (*call_marks(report.tool_calls), *report.marks)
                self._identity.learn(turn.arrival.run, marks, self.now())
        self._submit(report)

    def attend(self, peer: PeerId, recall: Recall) -> None:
        """See `SchedulerDesk.attend`."""
        self._recalls.attend(peer, recall)

    def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        """See `SchedulerDesk.end_run`."""
        if self._identity.owner(run) != principal:
            return False
        self._submit(RunEnded(run=run))
        self._identity.forget(run)
        return True

    def models(self) -> Sequence[ModelName]:
        """See `SchedulerDesk.models`."""
        return sorted({model for _, model in offered(self._state.serving, self._state.residency)})

    def resync(self, report: PeerResynced) -> None:
        """See `SchedulerDesk.resync`."""
        now = self.now()
        for turn in report.turns:
            self._identity.claim(turn.run, turn.principal, now)
        for run in report.runs:
            self._identity.claim(run.run, run.principal, now)
            if self._identity.owner(run.run) == run.principal:
                self._identity.learn(run.run, run.marks, now)
        self._submit(report)

    def peer_lost(self, peer: PeerId) -> None:
        """See `SchedulerDesk.peer_lost`."""
        self._recalls.leave(peer)
        self._submit(PeerLost(peer=peer))

    def add_replica(self, spec: ReplicaSpec) -> None:
        """See `SchedulerDesk.add_replica`."""
        self._submit(ReplicaAdded(spec=spec))

    def remove_replica(self, replica: ReplicaId) -> None:
        """See `SchedulerDesk.remove_replica`."""
        self._submit(ReplicaRemoved(replica=replica))

    def restore(self, memory: MemoryRestored) -> None:
        """Take in what a scheduler before this one had learned."""
        self._submit(memory)

    def probed(self, probe: ReplicaProbed) -> None:
        """Take in what a probe saw."""
        self._submit(probe)

    def _run_of(self, offer: TurnOffer, known: TurnArrived | None, now: Instant) -> RunId:
        """Return the run of an offer. An open turn that is offered again belongs where it belonged.

        Raises:
            TurnRefusedError: it names a run of somebody else.
        """
        if known is not None:
            return known.run
        run = self._identity.resolve(offer.principal, offer.keys, now)
        if isinstance(run, Refusal):
            raise TurnRefusedError(run)
        return run

    def _known(self, turn: TurnId) -> TurnArrived | None:
        """Return what is known of a turn that is open already, or was given up and may be."""
        state = self._state
        open_turn: Turn | HeldTurn | None = found(state.turns, turn)
        if open_turn is None and state.held:
            open_turn = state.held.get(turn)
        if open_turn is None and state.lapsed:
            open_turn = state.lapsed.get(turn)
        return None if open_turn is None else open_turn.arrival

    def _arrival(self, offer: TurnOffer, run: RunId, known: TurnArrived | None) -> TurnArrived:
        """Return an offer as the event that it is; `known` is what is known of its turn already.

        Raises:
            TurnRefusedError: it names no model, and not one alone is served.
        """
        service = self._service(offer) if known is None else (known.kind, known.model)
        if isinstance(service, Refusal):
            raise TurnRefusedError(service)
        kind, model = service
        return TurnArrived(
            turn=offer.turn,
            peer=offer.peer,
            run=run,
            model=model,
            kind=kind,
            service_class=offer.service_class,
            caller=offer.caller,
            principal=offer.principal,
            parent=self._identity.parent(offer.principal, offer.keys, run),
            prompt_bytes=offer.prompt_bytes,
            age_s=offer.age_s,
            shape=offer.shape,
            trace=offer.trace,
            recalls=offer.recalls,
            reply_max=offer.reply_max,
            picture_bytes=offer.picture_bytes,
            picture_tokens=offer.picture_tokens,
        )

    def _service(self, offer: TurnOffer) -> Service | Refusal:
        """Return what an offer asks for, before any engine is started for it."""
        services = Services(self._state.serving, self._state.residency)
        service, route = routed_service(self.settings.routing, offer, services)
        if route is not None:
            fields = {"turn": offer.turn, "asked": offer.model[:NAME_CHARS_MAX], "model": route.model}
            _log.info("turn_routed", extra={**fields, "why": route.why.value, "rule": route.rule})
        return service

    def _submit(self, event: Event) -> None:
        """Take an event in now, or right after the one that is being taken in."""
        if self._busy:
            self._mailbox.append(event)
            return
        self._busy = True
        try:
            self._take_in(event)
            while self._mailbox:
                self._take_in(self._mailbox.popleft())
        finally:
            self._busy = False

    def _take_in(self, event: Event) -> None:
        before = self._state
        started = _SECONDS()
        now = self.now()
        try:
            decision = decide(before, event, now)
        except Exception:  # noqa: BLE001 — one bad event must not end the scheduling of all others
            _log.exception("decision_failed", extra={"event_kind": type(event).__name__, "turn": _turn_of(event)})
            self._tally.faults += 1
            turn = _turn_of(event)
            if turn is not None:
                self._tickets.refuse(turn, _FAULT)
            return
        self._tally.decided(_SECONDS() - started, decision.actions)
        state = self._state = decision.state
        for witness in self._witnesses:
            witness.decided(before, event, now, decision)
        for action in decision.actions:
            self._perform(action)
        self._follow(event, before)
        if (
            state.peer_deadlines is not before.peer_deadlines
            or state.run_deadlines is not before.run_deadlines
            or state.replica_deadlines is not before.replica_deadlines
            or state.residency is not before.residency
            or state.working_set.leases is not before.working_set.leases
            or state.working_set.silences is not before.working_set.silences
        ):
            self._arm()
        if state is not before:
            self._pauses.decided(len(state.runs))

    def _perform(self, action: Action) -> None:
        if isinstance(action, PlaceTurn):  # by far the most of them
            self._place(action)
            return
        match action:
            case HoldTurn(turn=turn, why=why):
                if _log.isEnabledFor(logging.DEBUG):
                    _log.debug("turn_held", extra={"turn": turn, "why": explain(why)})
            case RefuseTurn(turn=turn, why=refusal):
                _log.info("turn_refused", extra={"turn": turn, "code": refusal.reason.value, "why": refusal.message})
                self._tickets.refuse(turn, refusal)
            case RecallTurn(turn=turn):
                self._recalls.order(self._state.turns[turn].arrival.peer, turn)
            case ForgetRun(run=run, why=reason):
                _log.debug("run_forgotten", extra={"run": run, "why": reason})
                self._identity.forget(run)
            case LoadModel() | UnloadModel() | DropKv():
                self.launchers.order(action)
            case _:
                assert_never(action)

    def _place(self, action: PlaceTurn) -> None:
        if self._tells_placements:
            _log.debug("turn_placed", extra=placed_fields(action))
        replica = self._state.replicas[action.replica]
        spec, turn = replica.spec, self._state.turns[action.turn]
        if spec is None:
            message = f"replica '{action.replica}' is not declared yet"
            self._tickets.refuse(action.turn, Refusal(reason=RefusalReason.SCHEDULER_FAULT, message=message))
        else:
            self._tickets.place(action.turn, placement_of(action, turn.arrival, replica, spec))

    def _follow(self, event: Event, before: State) -> None:
        """Do what an event asks of the shell itself: tell listeners, drop tickets that no order will settle."""
        if isinstance(event, (TurnFinished, TurnFailed, TurnAbandoned)):
            self._tickets.drop(event.turn)
        elif isinstance(event, (PeerLost, PeerResynced)):
            self._tickets.drop_unless(self._state.held.__contains__)
        self._audience.follow(event, before, self._state)

    def _arm(self) -> None:
        """Set the timer to the next deadline, unless it is set to an earlier one: waking up in vain is harmless."""
        deadline = next_deadline(self._state)
        if deadline is None or self._closed:
            return
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(max(deadline, self.now() + REARM_S_MIN), self._wake_up)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_up(self) -> None:
        self._timer = None
        self._submit(WokeUp())
        self._arm()


_SHUTTING_DOWN = Refusal(
    reason=RefusalReason.SHUTTING_DOWN,
    message="the scheduler is shutting down; try again in a moment",
    retry_after_s=1.0,
)
_FAULT = Refusal(reason=RefusalReason.SCHEDULER_FAULT, message="the scheduler failed on this turn; retry it")


def _turn_of(event: Event) -> TurnId | None:
    match event:
        case TurnArrived(turn=turn) | TurnFinished(turn=turn) | TurnFailed(turn=turn) | TurnAbandoned(turn=turn):
            return turn
        case _:
            return None
