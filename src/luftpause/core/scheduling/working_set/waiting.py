"""Why a held turn waits, by policy `working-set`."""

from immutables import Map

from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.affinity import Replicas, Serving, candidates
from luftpause.core.scheduling.reasons import (
    AwaitingFirstTokens,
    HoldReason,
    NoHealthyReplica,
    ReplicaClosed,
    RoomKeptFor,
    WaitingForTokens,
    WindowFull,
)
from luftpause.core.scheduling.state import HeldTurn, Limits, Replica
from luftpause.core.scheduling.working_set.room import (
    first_tokens_due,
    foreign_tokens,
    free_tokens,
    is_open,
    is_outdone,
    load_of,
)


def why_it_waits(
    replicas: Replicas, serving: Serving, held: Map[TurnId, HeldTurn], turn: HeldTurn, limits: Limits
) -> HoldReason:
    """Explain why no candidate takes a held turn; the one that comes closest speaks for all."""
    policy = limits.working_set
    assert policy is not None
    closest = None if turn.claims is None else replicas[turn.claims]
    if closest is None or not is_open(closest):
        among = candidates(replicas, serving, turn.pool)
        closest = _emptiest([each for each in among if not is_outdone(turn.need, each, among)])
        if closest is None:
            return _why_none_is_open(among, turn)
    if first_tokens_due(closest, policy):
        return AwaitingFirstTokens(replica=closest.replica, turns=len(closest.seat.awaiting))
    free = free_tokens(closest, turn.arrival.service_class, policy, little=turn.little)
    if free is not None and turn.need > free:
        others = closest.foreign if foreign_tokens(closest) else 0
        return WaitingForTokens(replica=closest.replica, need=turn.need, free=max(0, free), foreign=others)
    claim = closest.seat.claimed_by
    caller = turn.arrival.caller if claim is None else held[claim].arrival.caller
    return RoomKeptFor(replica=closest.replica, caller=caller)


def _emptiest(among: list[Replica]) -> Replica | None:
    """Return the open replica that is charged with least; None when none is open."""
    best: Replica | None = None
    least = 0
    for replica in among:
        if not is_open(replica):
            continue
        load = load_of(replica)
        if best is None or load < least:
            best, least = replica, load
    return best


def _why_none_is_open(among: list[Replica], turn: HeldTurn) -> HoldReason:
    for replica in among:
        if replica.closed_until is not None:
            return ReplicaClosed(replica=replica.replica)
        if replica.window is not None and replica.healthy:
            refused = replica.window.refused_at is not None
            return WindowFull(replica=replica.replica, turns=replica.window.size, refused=refused)
    causes = [f"{replica.replica}: {replica.why}" for replica in among if replica.why]
    return NoHealthyReplica(model=turn.arrival.model, cause=causes[0] if causes else "")
