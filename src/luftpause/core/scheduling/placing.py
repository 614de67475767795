"""Putting a turn on a replica: what both an arriving and a held turn go through."""

from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.affinity import why_placed
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.state import Replica, Run, Turn, without


def place(draft: Draft, arrival: TurnArrived, run: Run | None, replica: Replica, *, held_s: float) -> None:
    """Charge an open turn to a replica, make that its run's home, and order it sent.

    Args:
        draft: what to change.
        arrival: the turn, which is in no queue (any more).
        run: its run, stored or not; None for a single-pass turn.
        replica: where it goes.
        held_s: how long it waited, seconds.
    """
    why = why_placed(draft.replicas, run, replica)
    draft.charge(
        Turn(
            arrival=arrival,
            replica=replica.replica,
            why=why,
            held_s=held_s,
            seq=draft.take_seq(),
            in_run=run is not None,
        )
    )
    if run is not None:
        draft.set_run(
            run._replace(
                home=replica.replica,
                home_epoch=replica.epoch,
                turns=(*run.turns, arrival.turn),
                held=without(run.held, arrival.turn),
                out_on=None,
            )
        )
    draft.order(PlaceTurn(turn=arrival.turn, run=arrival.run, replica=replica.replica, why=why, held_s=held_s))
