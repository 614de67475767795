"""Which turns go where now, by policy `working-set`.

Interactive before batch, and of a class what goes on before what begins; both in fair order. The first in line that
may begin nowhere closes one replica to those behind it, and to lesser classes; so each replica is either full, closed
for somebody, or wanted by nobody. Where interactive runs alone are more than fits, batch would never begin: once its
first in line has waited for two minutes and none of it is at work, that one goes before them. Looks at replicas that
may have gained room, at the first in line, and at those who have a replica closed for them: never at all who wait.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Final

from luftpause.core.model.ids import Instant, ReplicaId, TurnId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.affinity import bound_to, candidates
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.places import all_of, first_of
from luftpause.core.scheduling.placing import place
from luftpause.core.scheduling.ranking import Bits
from luftpause.core.scheduling.services import services_of
from luftpause.core.scheduling.state import HeldTurn, Pool, Replica, Run, Service
from luftpause.core.scheduling.working_set.books import is_guest, need_of
from luftpause.core.scheduling.working_set.claims import claim
from luftpause.core.scheduling.working_set.keeping import speed_of
from luftpause.core.scheduling.working_set.room import (
    goes_on,
    has_tokens,
    is_open,
    is_outdone,
    is_too_large,
    load_of,
    may_begin,
    most_tokens,
)

CLASSES: Final = (ServiceClass.INTERACTIVE, ServiceClass.BATCH)

WAIT_STEP_S: Final = 0.25
"""Waits that differ by less are alike: then it counts where more is free."""

PASSED_S: Final = 30.0
"""So long guests begin past somebody who has a replica closed: what is larger than all would else never go."""

STARVED_S: Final = 120.0
"""So long batch that has nothing at work waits behind those who are interactive."""

OWED_S: Final = 120.0
"""So long those who come back to their place pass whoever has that replica closed: runs may be alive for hours."""


def send(draft: Draft, now: Instant) -> None:
    """Place every held turn that may go now on the replicas that may have gained room."""
    while names := draft.take_stirred():
        for name in names:
            _let_batch_begin(draft, name, now)
            while (held := _next(draft, name, now)) is not None:
                send_to(draft, draft.dequeue(held.arrival.turn), name, now)
            draft.looked_at(name)


def send_to(draft: Draft, held: HeldTurn, name: ReplicaId, now: Instant) -> None:
    """Place a turn that was taken out of its lane."""
    arrival = held.arrival
    run = draft.runs[arrival.part] if arrival.in_run else None
    place(draft, arrival, run, draft.replicas[name], now, held=held)


def where_now(draft: Draft, arrival: TurnArrived, run: Run | None, pool: Pool, now: Instant) -> Replica | None:
    """Return the replica that takes an arriving turn at once; None when it is to wait."""
    among = candidates(draft.replicas, draft.serving, pool)
    limits = draft.limits.working_set
    assert limits is not None
    service_class = arrival.service_class
    if not isinstance(pool, tuple):
        home = among[0] if among else None
        waits = bool(draft.queue_bits) and (service_class, pool) in draft.queue_bits
        return home if home is not None and not waits and goes_on(home, service_class, limits) else None
    need = need_of(draft, arrival, run)
    little, weighed = is_guest(draft, arrival, need), limits.placement
    best: Replica | None = None
    best_rank = (0, 0)
    is_hopeless = bool(among)
    home_name = None if run is None or (bound := bound_to(draft.replicas, run)) is None else bound.replica
    for replica in among:
        is_hopeless = is_hopeless and is_too_large(need, replica)
        passes = little and _lets_pass(draft, replica, now)
        if is_closed(draft, replica, service_class, little=passes) or not may_begin(replica, limits):
            continue
        if not has_tokens(replica, service_class, need, limits, little=little) or is_outdone(need, replica, among):
            continue
        saved = run.measure.context if run is not None and replica.replica == home_name else 0
        wait_s = (sum(each.tokens for each in replica.seat.awaiting) - saved) / speed_of(replica)
        rank = (int(wait_s / WAIT_STEP_S), load_of(replica)) if weighed else (0, replica.in_flight)
        if best is None or rank < best_rank:
            best, best_rank = replica, rank
    return _largest(among) if best is None and is_hopeless else best


def _largest(among: Sequence[Replica]) -> Replica | None:
    """Return the open replica whose engine has most memory: it says at once, and exactly, that a prompt is too long.

    To refuse it here would be to trust a guess, and to let it wait for an empty replica would empty one for nothing.
    """
    opened = [replica for replica in among if is_open(replica)]
    return max(opened, key=lambda each: (each.seat.pool or 0, -each.order), default=None)


def gives_way(draft: Draft, run: Run, now: Instant) -> bool:
    """Let the place of a run that comes back go, if whoever has its home closed waited for too long; say whether."""
    home = None if run.kept_until is None else bound_to(draft.replicas, run)
    holder = None if home is None else home.seat.claimed_by
    if home is None or holder is None or not is_closed(draft, home, run.service_class):
        return False
    since = draft.held[holder].claimed_at
    if since is None or now - since < OWED_S:
        return False
    draft.set_run(run._replace(kept=0, kept_until=None, loose=True))
    return True


def _lets_pass(draft: Draft, replica: Replica, now: Instant) -> bool:
    """Say whether who has a replica closed was not the first in line for so long that guests wait behind it too."""
    holder = replica.seat.claimed_by
    since = None if holder is None else draft.held[holder].claimed_at
    return since is None or now - since < PASSED_S


def is_closed(draft: Draft, replica: Replica, service_class: ServiceClass, *, little: bool = False) -> bool:
    """Say whether a replica is closed for a held turn of this class or a better one; to a guest only for a guest."""
    holder = replica.seat.claimed_by
    if holder is None:
        return False
    held = draft.held[holder]
    if held.first or (little and not held.little):
        return held.first
    return service_class is ServiceClass.BATCH or held.arrival.service_class is service_class


def _let_batch_begin(draft: Draft, name: ReplicaId, now: Instant) -> None:
    """Close a replica for the first batch turn in line before all others, if no batch is at work and it waits long."""
    replica, limits = draft.replicas.get(name), draft.limits.working_set
    assert limits is not None
    if replica is None or replica.batch or not limits.claim or replica.draining or not may_begin(replica, limits):
        return
    held = first_in_line(draft, ServiceClass.BATCH, services_of(replica.spec))
    if held is None or now - held.arrived_at < STARVED_S:
        return
    for each in candidates(draft.replicas, draft.serving, held.pool):
        if each.batch or _is_first(draft, each.seat.claimed_by):
            return
    held = draft.unclaim(held)._replace(first=True)
    draft.held = draft.held.set(held.arrival.turn, held)
    claim(draft, held, draft.replicas[name], limits, now)


def _is_first(draft: Draft, turn: TurnId | None) -> bool:
    """Say whether better classes begin after a held turn, too."""
    return turn is not None and draft.held[turn].first


def _next(draft: Draft, name: ReplicaId, now: Instant) -> HeldTurn | None:
    """Return the held turn that goes to a replica next; None when none may."""
    replica = draft.replicas.get(name)
    if replica is None or replica.draining:
        return None
    services = services_of(replica.spec)
    for service_class in CLASSES:
        held = _next_at_home(draft, replica, service_class) or _next_to_begin(
            draft, replica, service_class, services, now
        )
        if held is not None:
            return held
        replica = draft.replicas[name]  # it may have been closed for this class
    return None


def _next_at_home(draft: Draft, replica: Replica, service_class: ServiceClass) -> HeldTurn | None:
    limits = draft.limits.working_set
    assert limits is not None
    bit = draft.queue_bits.get((service_class, replica.replica))
    if bit is None or not goes_on(replica, service_class, limits):
        return None
    first = draft.lineup.first(bit)
    assert first is not None, f"nobody stands at {replica.replica}"
    _, _, turn = first_of(draft.lanes[replica.replica][service_class, first.principal, first.caller])
    return draft.held[turn]


def _next_to_begin(
    draft: Draft, replica: Replica, service_class: ServiceClass, services: Sequence[Service], now: Instant
) -> HeldTurn | None:
    limits = draft.limits.working_set
    assert limits is not None
    if not may_begin(replica, limits):
        return None
    queues = _queues(draft, service_class, services)
    if not queues:
        return None
    holder = replica.seat.claimed_by
    if holder is not None and is_closed(draft, replica, service_class):
        return _next_past_a_claim(draft, replica, service_class, queues, now)
    most = most_tokens(replica, service_class, limits)
    most_of_guests = most_tokens(replica, service_class, limits, little=True) if limits.guests else most
    for held in _in_line(draft, service_class, queues):
        if _is_outdone_for(draft, held, replica):
            continue
        if held.need <= (most_of_guests if held.little else most):
            return held
        if held.claims is None:
            if limits.claim:
                claim(draft, held, replica, limits, now)
            return None
    return None


def _next_past_a_claim(
    draft: Draft, replica: Replica, service_class: ServiceClass, queues: Sequence[tuple[Bits, Pool]], now: Instant
) -> HeldTurn | None:
    """Return who begins on a closed replica: the first in line, if that fits, else whoever has it closed.

    The first in line may have come later than whoever closed it: a caller of one run would else wait for all that a
    flood has closed. If it fits not and has no replica closed, it takes this one over. Not past somebody who had one
    closed for long, or goes before better classes, nor where it is outdone.
    """
    limits, holder = draft.limits.working_set, replica.seat.claimed_by
    assert limits is not None
    assert holder is not None
    held = draft.held[holder]
    if held.arrival.service_class is not service_class:
        return None
    first = held if held.first or not _lets_pass(draft, replica, now) else _first(draft, service_class, queues)
    if not _is_outdone_for(draft, first, replica):
        if has_tokens(replica, service_class, first.need, limits, little=first.little):
            return first
        if first.claims is None:
            claim(draft, first, replica, limits, now)
            return None
    return held if has_tokens(replica, service_class, held.need, limits, little=held.little) else None


def _is_outdone_for(draft: Draft, held: HeldTurn, replica: Replica) -> bool:
    """Say whether a held turn is for another replica with more memory. Most fit, and then no other is looked at."""
    if replica.seat.pool is None or held.need <= replica.seat.pool:
        return False
    return is_outdone(held.need, replica, candidates(draft.replicas, draft.serving, held.pool))


def first_in_line(draft: Draft, service_class: ServiceClass, services: Sequence[Service]) -> HeldTurn | None:
    """Return the turn of a class that is next to begin among those that ask for these services; None without one."""
    queues = _queues(draft, service_class, services)
    return _first(draft, service_class, queues) if queues else None


def _first(draft: Draft, service_class: ServiceClass, queues: Sequence[tuple[Bits, Pool]]) -> HeldTurn:
    """Return the first of all who stand in some queues."""
    payer = draft.lineup.first(sum([bit for bit, _ in queues]))
    assert payer is not None, f"nobody stands in {queues}"
    lane = service_class, payer.principal, payer.caller
    heads = [first_of(draft.lanes[pool][lane]) for bit, pool in queues if bit & payer.queues]
    return draft.held[min(heads)[2]]


def _queues(draft: Draft, service_class: ServiceClass, services: Sequence[Service]) -> list[tuple[Bits, Pool]]:
    found: list[tuple[Bits, Pool]] = []
    for service in services:
        bit = draft.queue_bits.get((service_class, service))
        if bit is not None:
            found.append((bit, service))
    return found


def _in_line(draft: Draft, service_class: ServiceClass, queues: Sequence[tuple[Bits, Pool]]) -> Iterator[HeldTurn]:
    """Yield turns that are to begin somewhere, in fair order."""
    for payer in draft.lineup.in_order(sum([bit for bit, _ in queues])):
        lane = service_class, payer.principal, payer.caller
        lanes = [draft.lanes[pool][lane] for bit, pool in queues if bit & payer.queues]
        if len(lanes) == 1:
            for chunk in lanes[0]:
                for _, _, turn in chunk:
                    yield draft.held[turn]
        else:
            for _, _, turn in merge(*[all_of(places) for places in lanes]):
                yield draft.held[turn]


def stand_in(draft: Draft, held: HeldTurn, now: Instant) -> None:
    """Let a turn that has just begun to wait close the replica where most is free, if one is there to be closed."""
    limits = draft.limits.working_set
    assert limits is not None
    if not limits.claim or not isinstance(held.pool, tuple):
        return
    service_class = held.arrival.service_class
    best: Replica | None = None
    least = 0
    among = candidates(draft.replicas, draft.serving, held.pool)
    for replica in among:
        if is_closed(draft, replica, service_class) or not may_begin(replica, limits):
            continue
        if is_outdone(held.need, replica, among):
            continue
        load = load_of(replica)
        if best is None or load < least:
            best, least = replica, load
    if best is not None:
        claim(draft, held, best, limits, now)
