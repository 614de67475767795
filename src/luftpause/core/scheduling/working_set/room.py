"""May this replica take this turn now, by policy `working-set`?

What goes on at home goes at once, but for a few turns that may wait for their first token at a time. What begins there
needs room for its tokens besides, and yields to whoever the replica is closed for. A replica without any of our turns
takes what it is given: whatever is reserved there, nothing works; but for what is larger than its engine's memory
while another one has more. Windows and refusals bind as with the other policy.
Knows one replica at a time, but for that.
"""

from collections.abc import Iterable
from typing import Final

from luftpause.core.model.replicas import ON_ONE_MACHINE
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.admission import takes_turns
from luftpause.core.scheduling.state import Replica
from luftpause.core.scheduling.working_set.guests import left_to_others
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits

ANY_NUMBER: Final = 1 << 62
"""No turn needs as many tokens."""

TOO_LARGE: Final = 2
"""So many times an engine's memory is more than a wrong guess of text."""


def is_open(replica: Replica) -> bool:
    """Say whether the replica takes turns at all now."""
    if replica.closed_until is not None or not takes_turns(replica):
        return False
    return replica.window is None or replica.in_flight < replica.window.size


def first_tokens_due(replica: Replica, limits: WorkingSetLimits) -> bool:
    """Say whether as many turns wait for their first token as may: what is sent now would only wait there.

    What is no engine that we know and never told of its load may be a whole fleet: it works at any number of prompts.
    """
    if not limits.first_tokens or len(replica.seat.awaiting) < limits.first_tokens:
        return False
    return replica.heard_at is not None or replica.engine in ON_ONE_MACHINE


def goes_on(replica: Replica, service_class: ServiceClass, limits: WorkingSetLimits) -> bool:
    """Say whether a run that has its place there may take its next turn."""
    if not is_open(replica):
        return False
    return service_class is ServiceClass.INTERACTIVE or not first_tokens_due(replica, limits)


def may_begin(replica: Replica, limits: WorkingSetLimits) -> bool:
    """Say whether a run may begin there that is small enough."""
    return is_open(replica) and not first_tokens_due(replica, limits)


def has_tokens(
    replica: Replica, service_class: ServiceClass, need: int, limits: WorkingSetLimits, *, little: bool = False
) -> bool:
    """Say whether so many tokens more fit into what the replica bears. `little`: they are a guest's."""
    return need <= most_tokens(replica, service_class, limits, little=little)


def most_tokens(
    replica: Replica, service_class: ServiceClass, limits: WorkingSetLimits, *, little: bool = False
) -> int:
    """Return how many tokens more fit into what the replica bears, below zero where too many are taken."""
    if replica.in_flight == 0 or not limits.gate:
        return ANY_NUMBER
    free = free_tokens(replica, service_class, limits, little=little)
    return ANY_NUMBER if free is None else free


def is_too_large(need: int, replica: Replica) -> bool:
    """Say whether an engine's whole memory is far too small for so many tokens, as far as they can be guessed."""
    pool = replica.seat.pool
    return pool is not None and need > TOO_LARGE * pool


def is_outdone(need: int, replica: Replica, among: Iterable[Replica]) -> bool:
    """Say whether so many tokens are more than an engine's whole memory, and less hopeless at another one's."""
    pool = replica.seat.pool
    if pool is None or need <= pool:
        return False
    return max([each.seat.pool or 0 for each in among], default=0) > pool


def foreign_tokens(replica: Replica) -> int:
    """Return what others' requests at a replica's engine take of its memory: each as much as one of our turns."""
    return int(replica.foreign * replica.seat.turn)


def load_of(replica: Replica) -> int:
    """Return the tokens that are spoken for or others': most is free where it is least, first declared of equals."""
    return replica.seat.charged + foreign_tokens(replica)


def free_tokens(
    replica: Replica, service_class: ServiceClass, limits: WorkingSetLimits, *, little: bool = False
) -> int | None:
    """Return how many tokens are free for runs of a class, below zero where too many are taken; None: any number."""
    seat = replica.seat
    capacity = seat.capacity
    if capacity is None:
        return None
    if replica.foreign and seat.pool is not None:
        capacity = min(capacity, max(0, seat.pool - foreign_tokens(replica)))
    fill = limits.fill if service_class is ServiceClass.BATCH and not little else limits.fill_interactive
    fills = int(capacity * fill)
    left = None if little else left_to_others(seat, service_class)
    if left is not None:
        fills = min(fills, max(int(capacity * limits.fill_beside), left))
    return fills - seat.charged
