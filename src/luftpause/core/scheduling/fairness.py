"""Which held turn goes out next.

Interactive first, then the principal with the fewest turns in flight, then its caller with the fewest, then by
arrival. Of principals, and of a principal's callers, with equally few the one that was served longest ago goes first,
so that they take turns even where there is room for one turn only. Nobody is held while a replica that may serve them
has room: each replica that may have gained some is filled as far as it goes. Looks at those replicas and at the first
in line only, never at all held turns nor at all who wait.
"""

from typing import Final

from luftpause.core.model.ids import Instant, ReplicaId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.admission import has_room
from luftpause.core.scheduling.affinity import bound_to, choose, pools_of
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.places import first_of
from luftpause.core.scheduling.placing import place
from luftpause.core.scheduling.state import HeldTurn, Pool, Replica
from luftpause.core.scheduling.working_set.sending import send

CLASSES_IN_ORDER: Final = (ServiceClass.INTERACTIVE, ServiceClass.BATCH)


def drain(draft: Draft, now: Instant) -> None:
    """Place every held turn that has room now, in fair order, on the replicas that may have gained some."""
    if not draft.held or not draft.is_stirred:
        return
    if draft.limits.working_set is not None:
        send(draft, now)
    else:
        queue = _Queue(draft)
        while (held := queue.take()) is not None:
            queue.place(held, now)


def somebody_waits(draft: Draft, pool: Pool, service_class: ServiceClass) -> bool:
    """Say whether a turn of the class is held in a pool: then none of the pool's replicas has room for another."""
    return bool(draft.queue_bits) and (service_class, pool) in draft.queue_bits


class _Queue:
    """The held turns that some replica has room for, in fair order. Knows where there is room, class by class."""

    __slots__ = ("_draft", "_openings")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._openings: dict[ServiceClass, dict[Pool, list[ReplicaId]]] = {each: {} for each in CLASSES_IN_ORDER}
        self._open()

    def take(self) -> HeldTurn | None:
        """Take the next turn out of its lane; None when there is no room for any."""
        draft = self._draft
        for service_class, openings in self._openings.items():
            queues = [
                (bit, pool) for pool in openings if (bit := draft.queue_bits.get((service_class, pool))) is not None
            ]
            if queues:
                first = draft.lineup.first(sum(bit for bit, _ in queues))
                assert first is not None, f"nobody stands in {queues}"
                lane = service_class, first.principal, first.caller
                heads = [first_of(draft.lanes[pool][lane]) for bit, pool in queues if bit & first.queues]
                return draft.dequeue(min(heads)[2])
        return None

    def place(self, held: HeldTurn, now: Instant) -> None:
        """Place a turn that was taken."""
        draft, arrival = self._draft, held.arrival
        run = draft.runs[arrival.part] if arrival.in_run else None
        home = None if run is None else bound_to(draft.replicas, run)
        among = [draft.replicas[replica] for replica in self._openings[arrival.service_class][held.pool]]
        chosen = choose(among, arrival.service_class, None if home is None else home.replica)
        assert chosen is not None, f"{arrival.turn} has room in {held.pool}"
        place(draft, arrival, run, chosen, now, held=held)
        self._close(draft.replicas[chosen.replica])
        self._open()

    def _open(self) -> None:
        """Add the pools that a replica with room serves. Any other replica had none before, and has none now."""
        for name in self._draft.take_stirred():
            replica = self._draft.replicas.get(name)
            if replica is None or replica.draining:
                continue
            pools = [pool for pool in pools_of(replica) if pool in self._draft.lanes]
            for service_class in CLASSES_IN_ORDER if pools else ():
                if has_room(replica, service_class):
                    for pool in pools:
                        among = self._openings[service_class].setdefault(pool, [])
                        if name not in among:
                            among.append(name)

    def _close(self, replica: Replica) -> None:
        """Take a replica out wherever it has no more room."""
        full = [service_class for service_class in CLASSES_IN_ORDER if not has_room(replica, service_class)]
        for pool in pools_of(replica) if full else ():
            for service_class in full:
                among = self._openings[service_class].get(pool, [])
                if replica.replica in among:
                    among.remove(replica.replica)
                    if not among:
                        del self._openings[service_class][pool]
