"""The scheduler's only entrance: an event in, a new state and orders out.

Routes; every rule lives in the module that it names. Policy `turn-admission`.
"""

from typing import assert_never

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling import expiry, fairness, lapsed, replicas, resync, turns
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import (
    Event,
    FirstTokenSeen,
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
    TurnsRenewed,
    WokeUp,
)
from luftpause.core.scheduling.expiry import next_deadline
from luftpause.core.scheduling.state import Decision, State

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
    match event:
        case TurnArrived() | FirstTokenSeen() | TurnFinished() | TurnFailed() | TurnAbandoned() | TurnsRenewed():
            _take_in_turn(draft, event, now)
        case RunEnded():
            turns.end_run(draft, event.run, now, why="ended by its owner")
        case ReplicaAdded():
            replicas.add(draft, event.spec, now)
        case ReplicaRemoved():
            replicas.remove(draft, event.replica, now)
        case ReplicaProbed():
            replicas.probe(draft, event, now)
        case PeerResynced():
            resync.resync(draft, event, now)
        case PeerLost():
            resync.lose(draft, event.peer, now)
        case WokeUp():
            expiry.expire(draft, now)
        case _:
            assert_never(event)
    fairness.drain(draft, now)
    return draft.freeze()


def _take_in_turn(draft: Draft, event: TurnArrived | TurnReport, now: Instant) -> None:
    if draft.lapsed:
        lapsed.revive(draft, event.turns if isinstance(event, TurnsRenewed) else (event.turn,), now)
    match event:
        case TurnArrived():
            turns.arrive(draft, event, now)
        case FirstTokenSeen():
            turns.hear(draft, event.turn, now)
        case TurnsRenewed():
            draft.renew(event.turns, now)
        case TurnFinished():
            turns.end(draft, event.turn, now, paused=bool(event.tool_calls), answered=True, tools=event.tools)
        case TurnFailed():
            replicas.leave_alone(draft, event, now)
            turns.end(draft, event.turn, now)
        case TurnAbandoned():
            turns.end(draft, event.turn, now)
        case _:
            assert_never(event)
