"""Which priority a turn has in its engine's own queue, where that has priorities switched on.

Our order is made here, before turns are sent; this keeps it where an engine queues or takes memory back all the same.
"""

from typing import NamedTuple

from luftpause.core.model.replicas import Priorities, ReplicaKind
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.state import Limits, Replica, Turn


class NativePriority(NamedTuple):
    """What becomes of a request's `priority`.

    Attributes:
        value: what it is set to; None: nothing is sent.
        is_ours: whether a client's own counts for nothing: it is replaced, or taken out.
    """

    value: int | None = None
    is_ours: bool = False


AS_ASKED = NativePriority()


def priority_of(limits: Limits, replica: Replica, turn: Turn) -> NativePriority:
    """Return the priority of a turn where it goes: interactive first, and of a class what goes on at home."""
    policy = limits.working_set
    if policy is None or not policy.native_priority or turn.arrival.kind is not ReplicaKind.GENERATIVE:
        return AS_ASKED
    rank = 2 * (turn.arrival.service_class is ServiceClass.BATCH) + (not turn.expects)
    match replica.priorities:
        case Priorities.LOWER_FIRST:
            return NativePriority(rank, is_ours=True)
        case Priorities.HIGHER_FIRST:
            return NativePriority(-rank, is_ours=True)
        case None:
            return NativePriority(is_ours=True)
