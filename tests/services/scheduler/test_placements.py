"""What a dataplane is told of a placement, and what the log has of it."""

from core.scheduling.builders import World, arrived, only, spec
from luftpause.core.model.ids import ReplicaId, TurnId
from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.services.scheduler.placements import placed_fields, placement_of


def test_a_placement_names_its_replica_with_all_that_its_dataplane_needs() -> None:
    known = spec("a", engine=EngineKind.VLLM)
    world = World(known)
    order = only(world.tell(arrived("t", "r")), PlaceTurn)
    turn, replica = world.state.turns[TurnId("t")], world.state.replicas[ReplicaId("a")]
    told = placement_of(order, turn.arrival, replica, known)
    assert (told.replica, told.endpoint, told.engine) == ("a", known.endpoint, EngineKind.VLLM)
    assert (told.kind, told.model, told.life) == (known.kind, "m", replica.epoch)
    assert told.why == "fewest turns in flight"
    assert told.restore == ""
    fields = {"turn": "t", "run": "r", "replica": "a", "why": told.why, "held_ms": 0}
    assert placed_fields(order) == fields
