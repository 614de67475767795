"""Which replica is closed for which held turn: one for each turn at most, and one turn for each replica."""

from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.state import HeldTurn, Replica


def claim(draft: Draft, turn: HeldTurn, replica: Replica) -> None:
    """Close a replica for a held turn; whoever had it closed for itself has it no more."""
    other = replica.seat.claimed_by
    if other is not None:
        displaced = draft.held[other]
        draft.held = draft.held.set(other, displaced._replace(claims=None))
        draft.stir(displaced.pool)
    name = turn.arrival.turn
    draft.held = draft.held.set(name, turn._replace(claims=replica.replica))
    closed = replica._replace(seat=replica.seat._replace(claimed_by=name))
    draft.replicas = draft.replicas.set(replica.replica, closed)
