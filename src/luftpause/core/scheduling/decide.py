"""The scheduler's only entrance: an event in, a new state and orders out.

Routes; every rule lives in the module that it names. Policy `turn-admission`.
"""

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling import expiry, fairness, lapsed, memory, replicas, resync, turns
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
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
    TurnReturned,
    TurnsRenewed,
    TurnStays,
    WokeUp,
)
from luftpause.core.scheduling.expiry import next_deadline
from luftpause.core.scheduling.residency import reports
from luftpause.core.scheduling.residency.review import review
from luftpause.core.scheduling.state import Decision, State
from luftpause.core.scheduling.working_set import growing, recalling

__all__ = ["decide", "next_deadline"]


def decide(state: State, event: Event, now: Instant) -> Decision:
    """Take in one event. Total: any event is legal in any state, and the given state stays as it is.

    Args:
        state: what was known before.
        event: what happened.
        now: when the shell took it in; never smaller than with the event before.
    """
    if isinstance(event, FirstTokenSeen) and not turns.is_news(state, event.turn, now):
        return Decision(state, ())
    draft = Draft(state)
    _take_in(draft, event, now)
    fairness.drain(draft, now)
    look_at = draft.residency.look_at
    if draft.is_review_due or (look_at is not None and look_at <= now):
        _review(draft, now)
    if draft.untold is not None:
        turns.tell(draft, draft.untold, now)
    return draft.freeze()


def _take_in(draft: Draft, event: Event, now: Instant) -> None:
    if isinstance(  # the classes stand here themselves: for a tuple by name a compiled module asks Python
        event,
        (
            TurnArrived,
            TurnFinished,
            FirstTokenSeen,
            TurnsRenewed,
            TurnFailed,
            TurnAbandoned,
            TurnReturned,
            TurnStays,
            AnswerGrew,
        ),
    ):
        _take_in_turn(draft, event, now)
        return
    match event:
        case RunEnded():
            turns.end_run(draft, event.run, now, why="ended by its owner")
            reports.release(draft, event.run)
        case ReplicaAdded() | ReplicaRemoved():
            _take_in_replica(draft, event, now)
        case ReplicaProbed():
            replicas.probe(draft, event, now)
            draft.is_review_due |= not event.healthy and event.replica in draft.residency.of_replica
        case PeerResynced():
            resync.resync(draft, event, now)
        case PeerLost():
            resync.lose(draft, event.peer, now)
        case MemoryRestored():
            memory.restore(draft, event, now)
        case WokeUp():
            expiry.expire(draft, now)
        case _:
            reports.take_in(draft, event, now)


def _review(draft: Draft, now: Instant) -> None:
    """Decide which models should be up, until nothing follows from that any more."""
    draft.is_review_due = True
    while draft.is_review_due:
        review(draft, now)
        fairness.drain(draft, now)


def _take_in_replica(draft: Draft, event: ReplicaAdded | ReplicaRemoved, now: Instant) -> None:
    """Take in a declaration; a launcher's replicas are declared by their models' being up, and by nobody else."""
    name = event.spec.replica if isinstance(event, ReplicaAdded) else event.replica
    if name in draft.residency.of_replica:
        return
    if isinstance(event, ReplicaAdded):
        replicas.add(draft, event.spec, now)
    else:
        replicas.remove(draft, event.replica, now)
    draft.is_review_due = bool(draft.residency.models)  # what else serves a model needs no load of it


def _take_in_turn(draft: Draft, event: TurnArrived | TurnReport, now: Instant) -> None:
    if draft.lapsed:
        lapsed.revive(draft, event.turns if isinstance(event, TurnsRenewed) else (event.turn,), now)
    if isinstance(event, TurnArrived):  # in the order of how often: a `match` asks in Python's own words
        turns.arrive(draft, event, now)
    elif isinstance(event, TurnFinished):
        turns.end(draft, event.turn, now, finished=event)
    elif isinstance(event, FirstTokenSeen):
        turns.hear(draft, event.turn, now)
    elif isinstance(event, TurnsRenewed):
        draft.renew(event.turns, now)
    elif isinstance(event, TurnFailed):
        replicas.leave_alone(draft, event, now)
        turns.end(draft, event.turn, now)
    elif isinstance(event, TurnAbandoned):
        turns.end(draft, event.turn, now)
    elif isinstance(event, AnswerGrew):
        growing.grow(draft, event.turn, event.reply_bytes, now)
    elif isinstance(event, TurnReturned):
        recalling.give_back(draft, event.turn, now)
    else:
        recalling.stay(draft, event.turn, now)
