"""May this replica take this turn now?

A replica takes turns while its engine queues none; once it queues, its turns are capped at what it runs. Batch turns
leave room for the interactive runs that are paused there and will come back. But a replica that has none of our turns
takes one, whatever its engine says: the report may have caught one request on its way in, and would hold turns for
ever. One whose engine asked to be left alone takes none until then. Knows one replica at a time.
"""

from collections.abc import Iterable

from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.reasons import (
    HoldReason,
    NoHealthyReplica,
    ReplicaClosed,
    RoomKept,
    WaitingForHome,
    WaitingForRoom,
)
from luftpause.core.scheduling.state import Pool, Replica


def takes_turns(replica: Replica) -> bool:
    """Say whether the replica is declared and its last probe found it healthy."""
    return replica.declared and replica.healthy


def capacity(replica: Replica) -> int | None:
    """Return how many turns the replica may have in flight; None when its engine reports no queue or nothing.

    A replica that takes no turns reports nothing, so whoever has a capacity takes turns.
    """
    load = replica.load
    return None if load is None or load.waiting == 0 else max(1, load.running)


def has_room(replica: Replica, service_class: ServiceClass) -> bool:
    """Say whether the replica may take a turn of this class now."""
    if replica.closed_until is not None:
        return False
    limit = capacity(replica)
    if limit is None or replica.in_flight == 0:
        return takes_turns(replica)
    kept = replica.kept if service_class is ServiceClass.BATCH else 0
    return replica.in_flight + kept < limit


def why_held(pool: Pool, candidates: Iterable[Replica], arrival: TurnArrived) -> HoldReason:
    """Explain why no candidate of the turn's pool has room for it; the one that comes closest speaks for all.

    Candidates stand in order of declaration; of several as close, the first speaks.
    """
    closest: Replica | None = None
    closed: Replica | None = None
    surplus, limit, cause = 0, 0, ""
    for replica in candidates:
        if replica.closed_until is not None:
            closed = closed or replica
            continue
        ceiling = capacity(replica)
        if ceiling is None:
            cause = cause or (f"{replica.replica}: {replica.why}" if replica.why else "")
            continue
        over = replica.in_flight - ceiling
        if closest is None or over < surplus:
            closest, surplus, limit = replica, over, ceiling
    if closest is None and closed is not None:
        return ReplicaClosed(replica=closed.replica)
    if closest is None:
        return NoHealthyReplica(model=arrival.model, cause=cause)
    if surplus < 0:
        return RoomKept(replica=closest.replica, paused_interactive=closest.kept)
    if isinstance(pool, str):
        return WaitingForHome(replica=closest.replica, in_flight=closest.in_flight, capacity=limit)
    return WaitingForRoom(replica=closest.replica, in_flight=closest.in_flight, capacity=limit)
