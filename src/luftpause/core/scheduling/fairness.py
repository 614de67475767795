"""Which held turn goes out next.

Interactive first, then the principal with the fewest turns in flight, then its caller with the fewest, then by
arrival. Of principals, and of a principal's callers, with equally few the one that was served longest ago goes first,
so that they take turns even where there is room for one turn only. Nobody is held while a replica that may serve them
has room: each replica that may have gained some is filled as far as it goes. Looks at those replicas and at the heads
of their lanes only, never at all held turns.
"""

from heapq import heapify, heappop, heappush
from itertools import count
from typing import TypeAlias

from immutables import Map

from luftpause.core.model.ids import Instant, ReplicaId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.admission import has_room
from luftpause.core.scheduling.affinity import bound_to, choose, pools_of
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.placing import place
from luftpause.core.scheduling.standings import Standing
from luftpause.core.scheduling.state import HeldTurn, Lane, Place, Pool, Replica, State

FairRank: TypeAlias = tuple[int, Standing, Standing, Place]
"""Class, standing of the principal, of the caller, place in the lane."""

Entry: TypeAlias = tuple[FairRank, int, Pool, Lane]
"""A lane with the rank that its head had. The number only keeps Python from comparing pools."""


def drain(draft: Draft, now: Instant) -> None:
    """Place every held turn that has room now, in fair order, on the replicas that may have gained some."""
    if draft.held:
        queue = _Queue(draft)
        while (held := queue.take()) is not None:
            queue.place(held, now)


def somebody_waits(lanes: Map[Lane, tuple[Place, ...]] | None, service_class: ServiceClass) -> bool:
    """Say whether a turn of the class is held in a pool: then none of the pool's replicas has room for another."""
    return lanes is not None and any(lane[0] is service_class for lane in lanes)


def fair_rank(state: State | Draft, lane: Lane, place_in_lane: Place) -> FairRank:
    """Return what orders a lane's head among the others: smaller goes first."""
    service_class, principal, caller = lane
    of = state.standings.of
    return 1 if service_class is ServiceClass.BATCH else 0, of[principal], of[principal, caller], place_in_lane


class _Queue:
    """The held turns that some replica has room for, in fair order, each class in a heap of its own.

    Standings only grow while it exists, so an entry of a heap may be too good by now, and is put back then.
    A turn that went to another pool meanwhile stands in the heap twice, once in vain.
    """

    __slots__ = ("_draft", "_heaps", "_numbers", "_openings")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._numbers = count()
        self._heaps: dict[ServiceClass, list[Entry]] = {each: [] for each in _IN_ORDER}
        self._openings: dict[ServiceClass, dict[Pool, list[ReplicaId]]] = {each: {} for each in _IN_ORDER}
        self._open()

    def take(self) -> HeldTurn | None:
        """Take the next turn out of its lane; None when there is no room for any."""
        draft = self._draft
        for service_class in _IN_ORDER:
            heap, openings = self._heaps[service_class], self._openings[service_class]
            while heap and openings:
                rank, number, pool, lane = heappop(heap)
                lanes = draft.lanes.get(pool) if pool in openings else None
                places = None if lanes is None else lanes.get(lane)
                if not places:
                    continue
                head = places[0]
                fresh = fair_rank(draft, lane, head)
                if fresh == rank:
                    if len(places) > 1:
                        heappush(heap, (fair_rank(draft, lane, places[1]), number, pool, lane))
                    return draft.dequeue(head[2])
                heappush(heap, (fresh, number, pool, lane))
        return None

    def place(self, held: HeldTurn, now: Instant) -> None:
        """Place a turn that was taken."""
        draft, arrival = self._draft, held.arrival
        run = draft.runs[arrival.run] if arrival.in_run else None
        home = None if run is None else bound_to(draft.replicas, run)
        among = [draft.replicas[replica] for replica in self._openings[arrival.service_class][held.pool]]
        chosen = choose(among, arrival.service_class, None if home is None else home.replica)
        assert chosen is not None, f"{arrival.turn} has room in {held.pool}"
        place(draft, arrival, run, chosen, held_s=now - held.arrived_at)
        self._close(draft.replicas[chosen.replica])
        self._open()

    def _open(self) -> None:
        """Add the lanes that a replica with room serves. Any other replica had none before, and has none now."""
        for name in self._draft.take_stirred():
            replica = self._draft.replicas.get(name)
            if replica is None:
                continue
            pools = [pool for pool in pools_of(replica) if pool in self._draft.lanes]
            for service_class in _IN_ORDER if pools else ():
                if has_room(replica, service_class):
                    for pool in pools:
                        self._add(pool, service_class, name)
                    heapify(self._heaps[service_class])

    def _add(self, pool: Pool, service_class: ServiceClass, name: ReplicaId) -> None:
        draft, heap, numbers = self._draft, self._heaps[service_class], self._numbers
        among = self._openings[service_class].setdefault(pool, [])
        if not among or name in among:
            for lane, places in draft.lanes[pool].items():
                if lane[0] is service_class:
                    heap.append((fair_rank(draft, lane, places[0]), next(numbers), pool, lane))
        if name not in among:
            among.append(name)

    def _close(self, replica: Replica) -> None:
        """Take a replica out wherever it has no more room."""
        full = [service_class for service_class in _IN_ORDER if not has_room(replica, service_class)]
        for pool in pools_of(replica) if full else ():
            for service_class in full:
                among = self._openings[service_class].get(pool, [])
                if replica.replica in among:
                    among.remove(replica.replica)
                    if not among:
                        del self._openings[service_class][pool]


_IN_ORDER = (ServiceClass.INTERACTIVE, ServiceClass.BATCH)
