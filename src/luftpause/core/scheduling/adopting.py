"""Charging turns that engines have already: what a dataplane tells of, or is heard of again."""

from luftpause.core.model.ids import ReplicaId
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.foreign import after_adoption
from luftpause.core.scheduling.state import Replica, Turn
from luftpause.core.scheduling.working_set.books import watch


def adopt(draft: Draft, turn: Turn) -> Replica:
    """Charge a turn to the replica that it is on, and return that; what it is to its run is the caller's business."""
    replica = noted(draft, turn.replica)
    if replica.foreign:
        draft.set_replica(after_adoption(replica))
    name = turn.arrival.turn
    if name in draft.lapsed:
        draft.lapsed = draft.lapsed.delete(name)
    draft.charge(turn)
    watch(draft, replica.replica)
    return replica


def noted(draft: Draft, replica: ReplicaId) -> Replica:
    """Return the replica, noted but not declared if we never heard of it."""
    known = draft.replicas.get(replica)
    if known is None:
        seq = draft.take_seq()
        known = Replica(replica=replica, spec=None, declared=False, order=seq, epoch=seq)
        draft.set_replica(known)
    return known
