"""May this replica take this turn now?

A replica takes turns while its engine queues none; once it queues, its turns are capped at what it runs, less what
others sent there past us. After an outage or a refusal its window caps them too. Batch turns leave room for the
interactive runs that are paused there and will come back; one that comes back goes in at once where batch turns took
that room, and batch waits for its first token. But a replica that has none of our turns takes one, whatever its engine
says: the report may have caught one request on its way in, and would hold turns for ever. One whose engine asked to be
left alone takes none until then. Knows one replica at a time.
"""

from collections.abc import Iterable

from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.reasons import (
    AwaitingReturn,
    HoldReason,
    NoHealthyReplica,
    ReplicaClosed,
    RoomKept,
    WaitingForHome,
    WaitingForRoom,
    WindowFull,
)
from luftpause.core.scheduling.state import Pool, Replica


def takes_turns(replica: Replica) -> bool:
    """Say whether the replica is declared, its last probe found it healthy, and it is not about to go."""
    return replica.declared and replica.healthy and not replica.draining


def queue_cap(replica: Replica) -> int | None:
    """Return how many turns its engine's load lets it have in flight; None when that reports no queue or nothing.

    What others sent there takes room as our own turns do, but never that of the last one: else they would starve us.
    """
    load = replica.load
    return None if load is None or load.waiting <= 0 else max(1, load.running - replica.foreign)


def capacity(replica: Replica) -> int | None:
    """Return how many turns the replica may have in flight, by its engine's load and its window; None for any number.

    A replica that takes no turns reports nothing and has no window, unless it is about to go.
    """
    cap, window = queue_cap(replica), replica.window
    if window is None:
        return cap
    return window.size if cap is None else min(cap, window.size)


def has_room(replica: Replica, service_class: ServiceClass) -> bool:
    """Say whether the replica may take a turn of this class now, if it is not about to go: then nobody asks."""
    if replica.closed_until is not None:
        return False
    limit = capacity(replica)
    if limit is None or replica.in_flight == 0:
        return takes_turns(replica)
    if service_class is not ServiceClass.BATCH:
        return replica.in_flight < limit
    return replica.in_flight + replica.kept < limit and not awaits_return(replica)


def takes_back(replica: Replica) -> bool:
    """Say whether a full replica takes an interactive run all the same that paused there: if batch fills it.

    Batch turns that went there before its engine queued left no room, and that is not the run's fault. Its window and
    its engine's wish to be left alone bind the run too.
    """
    if replica.closed_until is not None or not takes_turns(replica):
        return False
    if replica.window is not None and replica.in_flight >= replica.window.size:
        return False
    cap = queue_cap(replica)
    return cap is None or replica.in_flight - replica.batch < cap


def awaits_return(replica: Replica) -> bool:
    """Say whether batch waits for the first token of a run that came back; not once the engine queues no longer."""
    return replica.returning > 0 and queue_cap(replica) is not None


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
    return _why_full(pool, closest, limit)


def _why_full(pool: Pool, replica: Replica, limit: int) -> HoldReason:
    """Explain why a replica that takes turns has no room, by what it may have in flight."""
    if replica.in_flight + replica.kept < limit:
        return AwaitingReturn(replica=replica.replica)
    if replica.in_flight < limit:
        return RoomKept(replica=replica.replica, paused_interactive=replica.kept)
    window = replica.window
    if window is not None and window.size == limit:
        return WindowFull(replica=replica.replica, turns=limit, refused=window.refused_at is not None)
    if isinstance(pool, str):
        return WaitingForHome(
            replica=replica.replica, in_flight=replica.in_flight, capacity=limit, foreign=replica.foreign
        )
    return WaitingForRoom(replica=replica.replica, in_flight=replica.in_flight, capacity=limit, foreign=replica.foreign)
