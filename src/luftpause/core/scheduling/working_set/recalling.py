"""Batch turns that are taken back from their engine before it has said anything, for an interactive turn to go first.

Asked back is the youngest turn that lets the interactive one begin: it has waited least, and its engine has most likely
not begun with it. Whether anything of its answer has come is for its dataplane to say, where that is seen first. A turn
is taken back so often as may be and no oftener, and only where an engine stops at work that nobody waits for any more
and has done nothing by then but compute: not a hosted one, nor one that had KV read back for it.
"""

from luftpause.core.model.ids import Instant, TurnId
from luftpause.core.model.replicas import ON_ONE_MACHINE
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import RecallTurn
from luftpause.core.scheduling.affinity import candidates
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.reasons import RecalledBecause
from luftpause.core.scheduling.residency import parking
from luftpause.core.scheduling.residency.kv_state import NO_SEAT
from luftpause.core.scheduling.residency.uses import left
from luftpause.core.scheduling.services import services_of
from luftpause.core.scheduling.state import HeldTurn, Replica, Run, Turn, without
from luftpause.core.scheduling.working_set.books import kept_since
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.room import first_tokens_due, has_tokens, is_open, is_outdone
from luftpause.core.scheduling.working_set.sending import first_in_line, is_closed


def ask_back(draft: Draft, held: HeldTurn) -> None:
    """Recall a batch turn where that lets a held interactive turn begin that waits for first tokens alone."""
    limits = draft.limits.working_set
    is_urgent = held.arrival.service_class is ServiceClass.INTERACTIVE and isinstance(held.pool, tuple)
    if limits is None or not limits.recalls or not is_urgent:
        return  # what goes on at home waits for nobody's first token
    youngest: Turn | None = None
    among = candidates(draft.replicas, draft.serving, held.pool)
    for replica in among:
        turn = None if is_outdone(held.need, replica, among) else _that_makes_way(draft, replica, held, limits)
        if turn is not None and (youngest is None or turn.seq > youngest.seq):
            youngest = turn
    if youngest is None:
        return
    name = youngest.arrival.turn
    draft.turns = draft.turns.set(name, youngest._replace(asked_back=True))
    draft.order(
        RecallTurn(turn=name, replica=youngest.replica, favours=held.arrival.turn, why=RecalledBecause.FIRST_TOKENS)
    )


def stay(draft: Draft, turn: TurnId, now: Instant) -> None:
    """Note that a recalled turn does not come back, and ask for another one if somebody still waits for that."""
    draft.renew((turn,), now)
    in_flight, limits = draft.turns.get(turn), draft.limits.working_set
    if in_flight is None or limits is None or not in_flight.asked_back or in_flight.stays:
        return
    draft.turns = draft.turns.set(turn, in_flight._replace(stays=True))
    replica = draft.replicas[in_flight.replica]
    if first_tokens_due(replica, limits):
        held = first_in_line(draft, ServiceClass.INTERACTIVE, services_of(replica.spec))
        if held is not None:
            ask_back(draft, held)


def give_back(draft: Draft, turn: TurnId, now: Instant) -> None:
    """End a turn that came back from its engine: its run stands where it stood before, and its payer had nothing."""
    in_flight = draft.turns.get(turn)
    if in_flight is None:
        draft.renew((turn,), now)  # whoever speaks of a held turn lives
        return
    arrival, limits = in_flight.arrival, draft.limits.working_set
    if limits is not None and limits.by_service:
        payer = arrival.principal, arrival.caller
        draft.settle(payer, limits.weights.changed(payer, in_flight.service, 0))
    draft.discharge(in_flight)
    if draft.residency.of_replica:
        draft.residency = left(draft.residency, in_flight.replica, now)
    if draft.residency.models:
        parking.leave(draft, in_flight, None, now)
    run = draft.runs.get(arrival.part) if in_flight.in_run else None
    if run is not None:
        draft.set_run(_as_before(draft, run, in_flight, now))


def _as_before(draft: Draft, run: Run, turn: Turn, now: Instant) -> Run:
    """Return the run as the turn found it: out on its tool still, with its place, if it had one."""
    run = run._replace(turns=without(run.turns, turn.arrival.turn), ended_at=now)
    if not run.at_rest or draft.limits.working_set is None:
        return run
    return kept_since(draft, run, now) if turn.expects else run._replace(loose=run.paused)


def _that_makes_way(draft: Draft, replica: Replica, held: HeldTurn, limits: WorkingSetLimits) -> Turn | None:
    """Return the youngest batch turn of a replica whose return lets the held turn begin there; None without one."""
    service_class = held.arrival.service_class
    if not first_tokens_due(replica, limits) or is_closed(draft, replica, service_class) or not is_open(replica):
        return None
    for awaited in reversed(replica.seat.awaiting):
        turn = draft.turns[awaited.turn]
        if _may_come_back(draft, replica, turn, limits):
            fits = has_tokens(replica, service_class, held.need - turn.tokens, limits, little=held.little)
            return turn if fits else None
    return None


def _may_come_back(draft: Draft, replica: Replica, turn: Turn, limits: WorkingSetLimits) -> bool:
    arrival = turn.arrival
    if arrival.service_class is not ServiceClass.BATCH or turn.asked_back or arrival.recalls >= limits.recalls:
        return False
    return turn.in_run and replica.engine in ON_ONE_MACHINE and parking.seat_of(draft, turn) == NO_SEAT
