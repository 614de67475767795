"""Which held turn goes out next.

Interactive first, then the principal with the fewest turns in flight, then its caller with the fewest, then by
arrival. Nobody is held while a replica that may serve them has room: each pool that may have gained some is drained
as far as it goes. Works on the heads of lanes only, never on all held turns.
"""

from heapq import heapify, heappop, heappush
from typing import TypeAlias

from luftpause.core.model.ids import Instant, TurnId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.admission import has_room
from luftpause.core.scheduling.affinity import bound_to, candidates, choose
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.placing import place
from luftpause.core.scheduling.state import Lane, Place, Pool, State

FairRank: TypeAlias = tuple[int, int, int, Place]
"""Class, turns in flight of the principal, of the caller, place in the lane. Places are unique, so ranks are too."""

Entry: TypeAlias = tuple[FairRank, Pool, Lane]


def drain(draft: Draft, now: Instant) -> None:
    """Place every held turn that has room now, in fair order, in the pools that may have gained some.

    Counts in flight only grow meanwhile, so an entry of the heap may be too good by now, and is put back then.
    """
    heap: list[Entry] = []
    roomy: set[tuple[Pool, ServiceClass]] = set()
    _add_stirred(draft, heap, roomy)
    while heap and roomy:
        _, pool, lane = entry = heappop(heap)
        fresh = _entry(draft, pool, lane) if (pool, lane[0]) in roomy else None
        if fresh is None:
            continue
        if fresh != entry:
            heappush(heap, fresh)
        else:
            _place_head(draft, pool, lane, now)
            again = _entry(draft, pool, lane)
            if again is not None:
                heappush(heap, again)
            roomy = {key for key in roomy if _fits(draft, *key)}
            _add_stirred(draft, heap, roomy)


def fair_rank(state: State | Draft, lane: Lane, place_in_lane: Place) -> FairRank:
    """Return what orders a lane's head among the others: smaller goes first."""
    service_class, principal, caller = lane
    return (
        1 if service_class is ServiceClass.BATCH else 0,
        state.in_flight_by_principal.get(principal, 0),
        state.in_flight_by_payer.get((principal, caller), 0),
        place_in_lane,
    )


def _add_stirred(draft: Draft, heap: list[Entry], roomy: set[tuple[Pool, ServiceClass]]) -> None:
    """Add the lanes of stirred pools whose class has room: where one turn fits not, none of its pool and class does."""
    found = False
    for pool in draft.take_stirred():
        lanes = draft.lanes.get(pool)
        if lanes is None:
            continue
        fitting = [service_class for service_class in ServiceClass if _fits(draft, pool, service_class)]
        if fitting:
            found = True
            roomy.update((pool, service_class) for service_class in fitting)
            heap += [
                (fair_rank(draft, lane, places[0]), pool, lane) for lane, places in lanes.items() if lane[0] in fitting
            ]
    if found:
        heapify(heap)


def _entry(draft: Draft, pool: Pool, lane: Lane) -> Entry | None:
    lanes = draft.lanes.get(pool)
    places = None if lanes is None else lanes.get(lane)
    return None if not places else (fair_rank(draft, lane, places[0]), pool, lane)


def _fits(draft: Draft, pool: Pool, service_class: ServiceClass) -> bool:
    return any(has_room(replica, service_class) for replica in candidates(draft.replicas, draft.serving, pool))


def _place_head(draft: Draft, pool: Pool, lane: Lane, now: Instant) -> None:
    turn: TurnId = draft.lanes[pool][lane][0][2]
    held = draft.dequeue(turn)
    run = draft.runs[held.arrival.run] if held.arrival.kind is ReplicaKind.GENERATIVE else None
    home = None if run is None else bound_to(draft.replicas, run)
    among = candidates(draft.replicas, draft.serving, pool)
    chosen = choose(among, held.arrival.service_class, None if home is None else home.replica)
    assert chosen is not None, f"{turn} has room in {pool}"
    place(draft, held.arrival, run, chosen, held_s=now - held.arrived_at)
