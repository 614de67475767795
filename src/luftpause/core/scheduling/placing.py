"""Putting a turn on a replica: what both an arriving and a held turn go through."""

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.admission import queue_cap
from luftpause.core.scheduling.affinity import returns_to, why_placed
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.parts import at_work
from luftpause.core.scheduling.residency.kv_state import NO_SEAT, Seat
from luftpause.core.scheduling.residency.leases import root_of
from luftpause.core.scheduling.residency.parking import seat
from luftpause.core.scheduling.residency.uses import used
from luftpause.core.scheduling.state import HeldTurn, Replica, Run, Turn
from luftpause.core.scheduling.working_set.books import booked, watch
from luftpause.core.scheduling.working_set.priorities import priority_of


def place(
    draft: Draft, arrival: TurnArrived, run: Run | None, replica: Replica, now: Instant, *, held: HeldTurn | None = None
) -> None:
    """Charge an open turn to a replica, make that its run's home, and order it sent.

    Args:
        draft: what to change.
        arrival: the turn.
        run: its run, stored or not; None for a turn that is in no run.
        replica: where it goes.
        now: the present.
        held: the turn as it waited here, out of its lane by now; None for one that arrives.
    """
    why = why_placed(draft.replicas, run, replica)
    turn = Turn(
        arrival=arrival,
        replica=replica.replica,
        why=why,
        held_s=arrival.age_s if held is None else now - held.arrived_at,
        seq=draft.take_seq(),
        in_run=run is not None,
        over_in=draft.expect_life(arrival.peer, now) if held is None else held.over_in,
    )
    if draft.limits.working_set is not None:
        turn = booked(draft, turn, run, now, waited=held is not None)
    elif run is not None and _comes_back_to_a_full_home(run, replica):
        turn = turn._replace(returning=True)
    draft.charge(turn)
    if turn.tokens:
        watch(draft, replica.replica)
    there = NO_SEAT
    if draft.residency.of_replica:
        root = None if run is None else root_of(run, draft.runs, draft.models_of)
        draft.residency = used(draft.residency, replica.replica, root)
        there = seat(draft, arrival, run, replica)
    if run is not None:
        draft.set_run(at_work(run, arrival.turn, replica.replica, replica.epoch))
    draft.order(ordered(draft, turn, there))


def ordered(draft: Draft, turn: Turn, there: Seat) -> PlaceTurn:
    """Return the order to send a turn that is charged: the same whenever it is given."""
    priority = priority_of(draft.limits, draft.replicas[turn.replica], turn)
    return PlaceTurn(
        turn=turn.arrival.turn,
        run=turn.arrival.run,
        replica=turn.replica,
        why=turn.why,
        held_s=turn.held_s,
        slot=there.slot,
        restore=there.file,
        priority=priority.value,
        owns_priority=priority.is_ours,
        charge=turn.charge,
    )


def _comes_back_to_a_full_home(run: Run, replica: Replica) -> bool:
    """Say whether a run returns from a tool to a replica that queues, and leaves no room there for batch."""
    cap = queue_cap(replica)
    if cap is None or not returns_to(run, replica):
        return False
    # Room was kept for it until now, unless it was held.
    kept = replica.kept if run.held else replica.kept - 1
    return replica.in_flight + 1 + kept >= cap
