"""Rebuilding what the scheduler forgot, or never heard, from what a dataplane remembers."""

from luftpause.core.model.ids import Instant, PeerId
from luftpause.core.scheduling import lapsed
from luftpause.core.scheduling.adopting import adopt, noted
from luftpause.core.scheduling.ages import instant_before
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import KnownRun, OpenTurn, PeerResynced, RunPhase, TurnArrived
from luftpause.core.scheduling.lanes import open_turns
from luftpause.core.scheduling.parts import at_work
from luftpause.core.scheduling.reasons import PlacedBecause
from luftpause.core.scheduling.state import Run, Turn
from luftpause.core.scheduling.turns import end, leave_queue
from luftpause.core.scheduling.working_set.books import kept_since
from luftpause.core.scheduling.working_set.growing import told_charge


def resync(draft: Draft, event: PeerResynced, now: Instant) -> None:
    """End the peer's turns that it did not name, take in those that it did, then its runs."""
    named = frozenset(turn.turn for turn in event.turns)
    _end_turns_of(draft, event.peer, named, now)
    lapsed.forget(draft, event.peer)
    for turn in event.turns:
        _adopt_turn(draft, event.peer, turn, now)
    for run in event.runs:
        _adopt_run(draft, run, now)


def lose(draft: Draft, peer: PeerId, now: Instant) -> None:
    """End all turns of a dataplane that stayed away."""
    _end_turns_of(draft, peer, frozenset(), now)
    lapsed.forget(draft, peer)


def _end_turns_of(draft: Draft, peer: PeerId, named: frozenset[str], now: Instant) -> None:
    for turn in sorted([turn for turn, of, _ in open_turns(draft.turns, draft.held) if of == peer]):
        if turn not in named:
            end(draft, turn, now)


def _adopt_turn(draft: Draft, peer: PeerId, known: OpenTurn, now: Instant) -> None:
    if known.turn in draft.held:
        # The peer has it in flight, so the place it was given got lost on the way to us, not to the peer.
        leave_queue(draft, known.turn, now)
    if known.turn in draft.turns:
        draft.renew((known.turn,), now)
        return
    arrival = TurnArrived(
        turn=known.turn,
        peer=peer,
        run=known.run,
        model=known.model,
        kind=known.kind,
        service_class=known.service_class,
        caller=known.caller,
        principal=known.principal,
        parent=known.parent,
        shape=known.shape,
        trace=known.trace,
        reply_max=known.reply_max,
    )
    charge = told_charge(draft.limits, known)
    turn = Turn(
        arrival=arrival,
        replica=known.replica,
        why=PlacedBecause.RESYNCED,
        held_s=0.0,
        seq=draft.take_seq(),
        in_run=arrival.in_run,
        over_in=draft.expect_life(peer, now),
        tokens=0 if charge is None else charge.tokens,
        placed_at=now,
        first_s=None if charge is None else 0.0,
        charge=charge,
    )
    replica = adopt(draft, turn)
    if arrival.in_run:
        run = draft.runs.get(arrival.part)
        if run is None:
            run = Run(
                run=known.run,
                model=known.model,
                principal=known.principal,
                caller=known.caller,
                service_class=known.service_class,
                ended_at=now,
                parent=known.parent,
            )
        # Somebody else told that it is paused. It came back since, nobody knows when: that teaches nothing.
        draft.set_run(at_work(run, known.turn, known.replica, replica.epoch))


def _adopt_run(draft: Draft, known: KnownRun, now: Instant) -> None:
    """Take in a run at rest, unless what we know of it is newer. Time that it spent paused already counts."""
    ended_at = instant_before(now, known.age_s)
    run = draft.runs.get((known.run, known.model))
    if run is not None and (not run.at_rest or run.ended_at >= ended_at):
        return
    paused = known.phase is RunPhase.PAUSED
    adopted = Run(
        run=known.run,
        model=known.model,
        principal=known.principal,
        caller=known.caller,
        service_class=known.service_class,
        ended_at=ended_at,
        parent=known.parent if run is None or known.parent is not None else run.parent,
        home=known.replica,
        home_epoch=noted(draft, known.replica).epoch,
        paused=paused,
        out_on=draft.tools.slowest(known.tools) if paused else None,
    )
    draft.set_run(kept_since(draft, adopted, now) if paused else adopted)
