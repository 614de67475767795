"""From the lines of an event log to a trace of its runs. Reads nothing but lines, decides nothing about scheduling.

How it takes what does not fit into chains of answered turns:

- A turn that failed, was refused or was abandoned is left out, and so is the time until its run's next turn: failures
  are no demand. A run that nothing ever answered is left out with it.
- A turn beside another of its run, or with another model, goes into a chain of its own, which counts as a run.
- A run that the scheduler knew when the log began goes on as if it were new; one that was generating or paused when the
  log ended stops there. Both are a load, and neither is whole.
- Over a restart or a gap a turn stays open until its end is seen, its run asks for another, or a scheduler says that it
  is over. What happened in a gap is missing.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from luftpause.adapters.event_log.lines import Entry, Gap, Line, LineError, Segment, event_in, state_in
from luftpause.adapters.event_log.reading import Reading, UnreadableError, unreadable
from luftpause.core.model.ids import PeerId, RunId, TurnId
from luftpause.core.model.replicas import ReplicaKind, ReplicaSpec
from luftpause.core.scheduling.actions import ForgetRun, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    RunEnded,
    TurnAbandoned,
    TurnArrived,
    TurnFailed,
    TurnFinished,
    TurnReturned,
    TurnsRenewed,
)
from luftpause.core.scheduling.state import Limits
from luftpause.testkit.what_if.pool import SeenPool
from luftpause.testkit.what_if.strands import OpenTurn, Strand
from luftpause.testkit.what_if.timeline import Timeline
from luftpause.testkit.what_if.trace import Trace, TracedTurn

LEAD_S: Final = 10.0
"""A trace begins with its log, but at most so long before its first turn."""

_Order: TypeAlias = tuple[str, msgspec.Raw, str]
_ORDERS: Final = msgspec.json.Decoder(tuple[_Order, ...])
_PLACE: Final = msgspec.json.Decoder(PlaceTurn)
_REFUSE: Final = msgspec.json.Decoder(RefuseTurn)
_FORGET: Final = msgspec.json.Decoder(ForgetRun)


def extract(lines: Iterable[bytes]) -> Trace:
    """Return the trace of a log.

    Raises:
        UnreadableError: it is no event log, or not one of this format.
    """
    extractor = Extractor()
    reading = Reading(lines)
    for number, line in reading:
        try:
            extractor.take(line)
        except LineError as error:
            raise unreadable(number, error) from error
        except msgspec.DecodeError as error:
            raise UnreadableError(f"line {number}: orders: {error}") from error
    return extractor.trace()


class Extractor:
    """Takes line after line; `trace` is what they come to. Holds one value for each answered turn."""

    def __init__(self) -> None:
        self._timeline = Timeline()
        self._pool = SeenPool()
        self._limits = Limits()
        self._now = 0.0
        self._first_at: float | None = None
        self._policies: dict[str, None] = {}
        self._before: set[RunId] = set()
        self._runs: dict[RunId, list[Strand]] = {}
        self._strands: list[Strand] = []
        self._names: Counter[RunId] = Counter()
        self._open: dict[TurnId, OpenTurn] = {}
        self._left_out: Counter[str] = Counter()

    def take(self, line: Line) -> None:
        """Take in the next line.

        Raises:
            LineError: its state or event is none.
            msgspec.DecodeError: its orders are none.
        """
        match line:
            case Segment():
                self._begin(line)
            case Gap(dropped=dropped):
                self._left_out["events that the log lost"] += dropped
            case Entry():
                self._now = self._timeline.at(line.now)
                self._take_event(event_in(line))
                for kind, raw, _ in _ORDERS.decode(line.orders):
                    self._take_order(kind, raw)

    def trace(self) -> Trace:
        """Return what was read so far."""
        began_at = 0.0 if self._first_at is None else max(0.0, self._first_at - LEAD_S)
        answered = [strand for strand in self._strands if strand.turns]
        left_out = self._left_out.copy()
        left_out["runs that were never answered"] += len(self._strands) - len(answered)
        left_out["turns still open at the end"] += len(self._open)
        runs = sorted(
            (strand.traced(began_at) for strand in answered), key=lambda run: (run.turns[0].arrived_at, run.run)
        )
        return Trace(
            runs=tuple(runs),
            replicas=self._pool.healthy(),
            probes=self._pool.probes(),
            policies=tuple(self._policies),
            until=max((run.turns[-1].ended_at for run in runs), default=0.0),
            probe_period_s=self._pool.period_s(),
            left_out=+left_out,
        )

    def _begin(self, segment: Segment) -> None:
        state = state_in(segment)
        self._timeline.begin(segment)
        self._now = self._timeline.at(segment.now)
        self._policies[segment.policy] = None
        self._limits = state.limits
        self._before.update(run for run in state.models_of if run not in self._runs)
        for replica in state.replicas.values():
            self._declare(replica.spec)
            if replica.healthy:
                self._pool.found_healthy(replica.replica)
        for turn, each in self._open.items():
            each.lost = turn not in state.turns and turn not in state.held

    def _declare(self, spec: ReplicaSpec | None) -> None:
        if spec is not None and spec.kind is ReplicaKind.GENERATIVE:
            self._pool.declared(spec.replica, spec.models)

    def _take_event(self, event: Event) -> None:
        match event:
            case TurnArrived():
                self._arrive(event)
            case FirstTokenSeen(turn=turn):
                self._renew((turn,))
                self._begin_answer(turn)
            case TurnsRenewed(turns=turns):
                self._renew(turns)
            case AnswerGrew(turn=turn):
                self._renew((turn,))
            case TurnFinished():
                self._finish(event)
            case TurnFailed(turn=turn):
                self._drop(turn, "failed turns")
            case TurnAbandoned(turn=turn):
                self._drop(turn, "abandoned turns")
            case TurnReturned(turn=turn):
                self._return(turn)
            case _:
                self._take_other(event)

    def _take_other(self, event: Event) -> None:
        match event:
            case RunEnded(run=run):
                self._forget(run, told=True)
            case PeerLost(peer=peer):
                self._end_of_peer(peer, ())
            case PeerResynced(peer=peer, turns=known):
                self._end_of_peer(peer, [turn.turn for turn in known])
                names = {run.run for run in event.runs} | {turn.run for turn in known}
                self._before |= names - self._runs.keys()
            case ReplicaAdded(spec=spec):
                self._declare(spec)
            case ReplicaProbed():
                self._pool.probed(event, self._now)
            case _:
                pass  # who is removed served its turns; deadlines are the recorded scheduler's

    def _take_order(self, kind: str, raw: msgspec.Raw) -> None:
        match kind:
            case "PlaceTurn":
                self._place(_PLACE.decode(raw))
            case "RefuseTurn":
                self._drop(_REFUSE.decode(raw).turn, "refused turns")
            case "ForgetRun":
                self._forget(_FORGET.decode(raw).run, told=False)
            case _:
                pass  # to be held is no news: the placement says for how long

    def _place(self, order: PlaceTurn) -> None:
        turn = self._open.get(order.turn)
        if turn is not None and turn.placed_at is None:
            turn.placed_at, turn.replica, turn.held_s = self._now, order.replica, order.held_s

    def _arrive(self, arrival: TurnArrived) -> None:
        if arrival.kind is not ReplicaKind.GENERATIVE:
            self._left_out["single-pass turns"] += 1
            return
        if not arrival.in_run:
            self._left_out["turns in no run"] += 1
            return
        if arrival.turn in self._open:
            self._renew((arrival.turn,))  # the same one, offered again
            return
        if self._first_at is None:
            self._first_at = self._now
        strand = self._strand_for(arrival)
        strand.open = OpenTurn(arrival, strand, self._now - max(0.0, arrival.age_s), self._now)
        self._open[arrival.turn] = strand.open

    def _strand_for(self, arrival: TurnArrived) -> Strand:
        """Return the chain that the turn goes on, the one used last if there are several; else a new one."""
        strands = self._runs.setdefault(arrival.run, [])
        for strand in strands:
            if strand.open is not None and self._is_lost(strand.open):
                self._drop(strand.open.arrival.turn, "turns whose end nobody saw")
        taking = [strand for strand in strands if strand.takes(arrival)]
        if taking:
            return max(taking, key=lambda strand: strand.last_at)
        self._names[arrival.run] += 1
        number = self._names[arrival.run]
        name = arrival.run if number == 1 else RunId(f"{arrival.run} ({number})")
        if strands:
            self._left_out["runs split at turns side by side or by model"] += 1
        strand = Strand(first=arrival, name=name, begun_before=arrival.run in self._before)
        strands.append(strand)
        self._strands.append(strand)
        return strand

    def _is_lost(self, turn: OpenTurn) -> bool:
        return turn.lost or self._now - turn.seen_at >= self._limits.turn_timeout_s

    def _renew(self, turns: Iterable[TurnId]) -> None:
        for turn in turns:
            if turn in self._open:
                self._open[turn].seen_at, self._open[turn].lost = self._now, False

    def _begin_answer(self, turn: TurnId) -> None:
        if turn in self._open and self._open[turn].first_at is None:
            self._open[turn].first_at = self._now

    def _finish(self, event: TurnFinished) -> None:
        turn = self._open.get(event.turn)
        if turn is None:
            return  # under way when the log began, or over twice
        if turn.placed_at is None or turn.replica is None:
            self._drop(event.turn, "turns whose placement nobody saw")
            return
        self._close(turn)
        turn.strand.turns.append(
            TracedTurn(
                arrived_at=turn.arrived_at,
                placed_at=turn.placed_at,
                first_at=turn.first_at,
                ended_at=self._now,
                replica=turn.replica,
                prompt_bytes=turn.arrival.prompt_bytes,
                usage=event.usage,
                paused=bool(event.tool_calls),
                held_s=turn.held_s,
            )
        )

    def _drop(self, turn: TurnId, what: str) -> None:
        if turn in self._open:
            self._left_out[what] += 1
            self._close(self._open[turn])

    def _return(self, turn: TurnId) -> None:
        """It was recalled, and is offered again: the same demand, with its age."""
        if turn in self._open:
            self._close(self._open[turn])

    def _close(self, turn: OpenTurn) -> None:
        del self._open[turn.arrival.turn]
        turn.strand.open = None

    def _end_of_peer(self, peer: PeerId, going_on: Iterable[TurnId]) -> None:
        named = frozenset(going_on)
        for turn in [turn for turn, each in self._open.items() if each.peer == peer and turn not in named]:
            self._drop(turn, "turns of a lost dataplane")
        self._renew(named)

    def _forget(self, run: RunId, *, told: bool) -> None:
        self._before.discard(run)
        for strand in self._runs.pop(run, ()):
            strand.told_end |= told
            strand.forgotten = True
