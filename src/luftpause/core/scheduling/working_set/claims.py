"""Which replica is closed for which held turn: one for each turn at most, and one turn for each replica."""

from luftpause.core.model.ids import Instant
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.affinity import candidates
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.state import HeldTurn, Replica
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.room import may_begin


def claim(draft: Draft, turn: HeldTurn, replica: Replica, limits: WorkingSetLimits, now: Instant) -> None:
    """Close a replica for a held turn; whoever had it closed for itself has it no more, and may have another one."""
    other = replica.seat.claimed_by
    if other is not None:
        displaced = draft.held[other]
        draft.held = draft.held.set(other, displaced._replace(claims=None))
        for each in candidates(draft.replicas, draft.serving, displaced.pool):
            if may_begin(each, limits) and _is_open_to(draft, each, displaced.arrival.service_class):
                draft.set_replica(each)
    name = turn.arrival.turn
    claimed_at = now if turn.claimed_at is None else turn.claimed_at
    draft.held = draft.held.set(name, turn._replace(claims=replica.replica, claimed_at=claimed_at))
    closed = replica._replace(seat=replica.seat._replace(claimed_by=name))
    draft.replicas = draft.replicas.set(replica.replica, closed)


def _is_open_to(draft: Draft, replica: Replica, service_class: ServiceClass) -> bool:
    """Say whether a turn of this class that has no replica closed may have this one: interactive from batch."""
    if replica.seat.claimed_by is None:
        return True
    holder = draft.held[replica.seat.claimed_by]
    is_batch = holder.arrival.service_class is ServiceClass.BATCH
    return is_batch and not holder.first and service_class is not ServiceClass.BATCH
