"""Replicas come, are probed and go; what that does to the runs that are at home there and to held turns.

A replica that falls ill starts a new epoch: bindings and kept room of the old one are void, since its cache may be.
So does one whose engine was started anew between two probes: its counters fell. Knows nothing of how a probe is made.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from luftpause.core.model.ids import Instant, ReplicaId, TurnId
from luftpause.core.model.replicas import EngineKind, Load, ReplicaSpec
from luftpause.core.scheduling.actions import RefuseTurn
from luftpause.core.scheduling.admission import takes_turns
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import ReplicaProbed, TurnFailed
from luftpause.core.scheduling.foreign import after_report
from luftpause.core.scheduling.places import all_of
from luftpause.core.scheduling.residency.uses import model_of
from luftpause.core.scheduling.services import services_of
from luftpause.core.scheduling.state import Pool, Replica
from luftpause.core.scheduling.turns import leave_queue, unknown_model
from luftpause.core.scheduling.windows import after_outage, after_refusal
from luftpause.core.scheduling.working_set.books import watch
from luftpause.core.scheduling.working_set.learning import after_report as after_report_of

STARTED_ANEW: Final = "its engine was started anew"
"""What an outage is called that no probe saw."""


def add(draft: Draft, spec: ReplicaSpec, now: Instant) -> None:
    """Declare a replica. The same declaration again changes nothing; another one under its name replaces it."""
    known = draft.replicas.get(spec.replica)
    if known is not None and known.declared and known.spec == spec:
        return
    seq = draft.take_seq()
    if known is None:
        fresh = Replica(replica=spec.replica, spec=spec, declared=True, order=seq, epoch=seq, engine=spec.engine)
    elif not known.declared:
        fresh = known._replace(
            spec=spec, declared=True, order=seq, seen_healthy=False, engine=spec.engine, peak=known.in_flight
        )
    else:
        known = _open_for_all(draft, known)
        _withdraw(draft, known)
        fresh = _reborn(known, seq)._replace(spec=spec, seen_healthy=False, engine=spec.engine)
    draft.set_replica(fresh)
    draft.enlist(fresh)
    watch(draft, spec.replica)
    if known is not None and known.spec is not None:
        _settle(draft, spec.replica, known.spec, now)


def remove(draft: Draft, replica: ReplicaId, now: Instant) -> None:
    """Take a replica away. Its turns in flight stay charged to it until they end; an unknown one changes nothing."""
    known = draft.replicas.get(replica)
    if known is None or not known.declared or known.spec is None:
        return
    spec = known.spec
    known = _open_for_all(draft, known)
    _withdraw(draft, known)
    if known.in_flight:
        draft.set_replica(_reborn(known, draft.take_seq())._replace(declared=False))
    else:
        draft.replicas = draft.replicas.delete(replica)
    _settle(draft, replica, spec, now)


def probe(draft: Draft, event: ReplicaProbed, now: Instant) -> None:
    """Take in what a probe saw; a replica that nobody declared is none of ours."""
    known = draft.replicas.get(event.replica)
    if known is None or not known.declared:
        return
    if event.healthy and _was_started_anew(known, event.load):
        outage = replace(event, healthy=False, load=None, cause=STARTED_ANEW)
        _take_in(draft, known, outage, now)
        known = draft.replicas[event.replica]
    _take_in(draft, known, event, now)


def _take_in(draft: Draft, known: Replica, event: ReplicaProbed, now: Instant) -> None:
    assert known.spec is not None, "it is declared"
    engine = known.engine
    if known.spec.engine is EngineKind.AUTO and event.engine is not EngineKind.AUTO:
        engine = event.engine
    before = known
    if known.healthy and not event.healthy:
        known = _open_for_all(draft, known)
        before = _reborn(known, draft.take_seq())._replace(draining=known.draining)
    comes_back = event.healthy and known.seen_healthy and not known.healthy
    told = event.load.prompt_tokens if event.healthy and event.load is not None else None
    reported = after_report(before, event.load, now) if event.healthy else before._replace(load=None)
    fresh = reported._replace(
        healthy=event.healthy,
        seen_healthy=known.seen_healthy or event.healthy,
        engine=engine,
        why="" if event.healthy else event.cause,
        window=after_outage(draft.limits) if comes_back else before.window,
        priorities=event.priorities if event.healthy else None,
        ill_since=_ill_since(known, event, now),
        prompt_tokens=before.prompt_tokens if told is None else told,
    )
    if draft.limits.working_set is not None and event.healthy and event.load is not None:
        fresh = fresh._replace(seat=after_report_of(fresh.seat, event.load, now))
    past = draft.past.get(known.replica) if fresh.seen_healthy else None
    if past is not None:
        draft.past = draft.past.delete(known.replica)
        if not known.seen_healthy:
            seat = fresh.seat
            if draft.limits.working_set is not None:
                seat = seat._replace(speed=past.speed, window=past.bears, window_heard=past.bears)
            fresh = fresh._replace(placed=known.placed + past.placed, window=past.window, seat=seat)
    if fresh == known:
        return
    draft.set_replica(fresh)
    if fresh.seat.pool != known.seat.pool:
        _stir_likes(draft, fresh)  # what is larger than their memory may be so for all now
    watch(draft, fresh.replica)
    if event.healthy is not known.healthy:
        # Whoever falls ill lets its own go; whoever is well again takes back those that are away from it.
        _reassign(draft, _away(draft, fresh) if event.healthy else _held_in(draft, known.replica))


def _withdraw(draft: Draft, replica: Replica) -> None:
    draft.withdraw(replica)
    _stir_likes(draft, replica)


def _stir_likes(draft: Draft, replica: Replica) -> None:
    """Let those who wait for any replica like that be tried again."""
    for service in services_of(replica.spec):
        draft.stir(service)


def _ill_since(known: Replica, event: ReplicaProbed, now: Instant) -> Instant | None:
    if event.healthy:
        return None
    return now if known.ill_since is None else known.ill_since


def _was_started_anew(known: Replica, load: Load | None) -> bool:
    """Say whether an engine has read far less since it was started than it had before: that was another process.

    Who asks a balancer hears of one engine and then of another, and these have read about as much.
    """
    if load is None or load.prompt_tokens is None or known.prompt_tokens is None or not known.healthy:
        return False
    return 2 * load.prompt_tokens < known.prompt_tokens


def leave_alone(draft: Draft, event: TurnFailed, now: Instant) -> None:
    """Close the replica of a turn in flight whose engine asked for that; the longest it asked for counts.

    That halves its window, once for each time that it is closed.
    """
    turn, seconds = draft.turns.get(event.turn), event.retry_after_s
    if turn is None or seconds is None or not seconds > 0.0:
        return
    replica = draft.replicas[turn.replica]
    until = Instant(now + min(seconds, draft.limits.retry_after_s_max))
    if not replica.declared or (replica.closed_until is not None and replica.closed_until >= until):
        return
    if replica.closed_until is None and takes_turns(replica):
        replica = replica._replace(window=after_refusal(replica))
    draft.set_replica(replica._replace(closed_until=until))
    draft.replica_deadlines = draft.replica_deadlines.put(replica.replica, draft.replica_deadlines.bucket(until))


def set_ready(draft: Draft, replica: ReplicaId) -> None:
    """Take a declared replica in as healthy without a probe: its launcher has seen its engine ready."""
    fresh = draft.replicas[replica]._replace(healthy=True, seen_healthy=True, why="", ill_since=None)
    draft.set_replica(fresh)
    _reassign(draft, _away(draft, fresh))


def set_draining(draft: Draft, replica: ReplicaId, *, draining: bool) -> None:
    """Let a replica take no more turns, or take them again; those held for it wait elsewhere meanwhile."""
    known = _open_for_all(draft, draft.replicas[replica])
    fresh = known._replace(draining=draining)
    if draining:
        _withdraw(draft, known)
    elif known.draining:
        draft.enlist(fresh)
    draft.set_replica(fresh)
    _reassign(draft, _held_in(draft, replica) if draining else _away(draft, fresh))


def _reborn(replica: Replica, epoch: int) -> Replica:
    """Return the replica at the start of a new life: what was bound to the old one is bound no more."""
    seat = replica.seat._replace(kept=0, claimed_by=None, pool=None, hits=1.0, preemptions=None)
    if replica.heard_at is not None:
        seat = seat._replace(window=seat.window_heard)  # what it seemed to forget since then went with its old life
    return replica._replace(
        epoch=epoch,
        healthy=False,
        load=None,
        kept=0,
        why="",
        closed_until=None,
        draining=False,
        window=None,
        peak=replica.in_flight,
        surplus=None,
        foreign=0,
        heard_at=None,
        seat=seat,
        priorities=None,
        ill_since=None,
        prompt_tokens=None,
    )


def _open_for_all(draft: Draft, replica: Replica) -> Replica:
    """Return the replica closed for nobody any more; whoever had it closed may have another one that it fits into."""
    claim = replica.seat.claimed_by
    if claim is None:
        return replica
    draft.stir(draft.unclaim(draft.held[claim]).pool)
    return draft.replicas[replica.replica]


def _settle(draft: Draft, replica: ReplicaId, old: ReplicaSpec, now: Instant) -> None:
    """Move the held turns of a changed replica to the pools they belong to now; refuse those that nobody serves."""
    _reassign(draft, _held_in(draft, replica))
    for service in services_of(old):
        if service not in draft.serving and model_of(draft.residency, *service) is None:
            for turn in _held_in(draft, service):
                leave_queue(draft, turn, now)
                draft.order(RefuseTurn(turn=turn, why=unknown_model(draft, *service)))


def _reassign(draft: Draft, turns: Iterable[TurnId]) -> None:
    for turn in turns:
        draft.reassign(turn)


def _held_in(draft: Draft, pool: Pool) -> list[TurnId]:
    """Return the turns held in a pool, in order of arrival."""
    lanes = draft.lanes.get(pool)
    if lanes is None:
        return []
    return [turn for _, _, turn in sorted(place for lane in lanes.values() for place in all_of(lane))]


def _away(draft: Draft, home: Replica) -> list[TurnId]:
    """Return the held turns that are away from a home, in order of arrival; those of its earlier lives have none."""
    places = draft.away.get((home.replica, home.epoch))
    return [] if places is None else [turn for _, _, turn in sorted(places.values())]
