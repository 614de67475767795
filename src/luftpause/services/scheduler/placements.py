"""Where a placed turn goes, as its dataplane is told, and as the log has it."""

from typing import Final

from luftpause.core.model.parked_kv import kv_file_name
from luftpause.core.model.replicas import Placement, ReplicaSpec
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.reasons import PlacedBecause
from luftpause.core.scheduling.state import Replica

_WHY: Final = {why: why.value for why in PlacedBecause}
"""An enum's `value` runs in Python at every look-up."""


def placement_of(action: PlaceTurn, arrival: TurnArrived, replica: Replica, spec: ReplicaSpec) -> Placement:
    """Return what the dataplane of a turn is told."""
    return Placement(
        replica=action.replica,
        endpoint=spec.endpoint,
        why=_WHY[action.why],
        engine=replica.engine,
        dialects=spec.dialects,
        kind=arrival.kind,
        model=arrival.model,
        life=replica.epoch,
        slot=action.slot,
        restore="" if action.restore is None else kv_file_name(action.restore),
        priority=action.priority,
        owns_priority=action.owns_priority,
        charge=action.charge,
    )


def placed_fields(action: PlaceTurn) -> dict[str, object]:
    """Return what the log says of a placement."""
    return {
        "turn": action.turn,
        "run": action.run,
        "replica": action.replica,
        "why": _WHY[action.why],
        "held_ms": round(action.held_s * 1000),
    }
