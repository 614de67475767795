"""One model's steps: what they order, and that up and down are exact inverses."""

from core.scheduling.builders import World, arrived, finished, only
from core.scheduling.canonical import text_of
from core.scheduling.residency.words import down, joined, model, replica_of, unload_asked, up
from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, ReplicaId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.actions import HoldTurn
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.steps import NEWEST_LOAD_WEIGHT, spec_of

A = ModelName("A")
PAYER = (PrincipalId("anonymous"), CallerId("x"))


def test_a_load_counts_as_a_turn_of_whoever_forced_it_until_it_ends() -> None:
    world = World()
    world.tell(joined(model("A", 6), model("B", 6)))
    order, held = world.tell(arrived("t", model="A", caller="x"))
    assert isinstance(order, LoadModel)
    assert isinstance(held, HoldTurn)
    assert order.payer == PAYER
    assert world.state.standings.of[PAYER].flying == 1
    world.tell(up("A"))
    assert world.state.standings.of[PAYER].flying == 1  # the turn itself by now
    world.tell(finished("t"))
    assert PAYER not in world.state.standings.of


def test_what_comes_up_and_goes_leaves_nothing_but_what_was_learned() -> None:
    world = World()
    world.tell(joined(model("A", ttl=60.0)))
    for _ in range(2):
        world.tell(arrived("t", "r", model="A"))
        world.tell(up("A"))
        world.tell(finished("t"))
        world.tell(unload_asked("A"))
        world.tell(down("A"))
        after = world.state._replace(runs=world.state.runs, next_seq=0)
        assert not after.replicas
        assert not after.serving
        assert not after.residency.of_replica
        assert not after.residency.waiting
    assert text_of(world.state.residency.models[A].replica) == text_of(None)


def test_how_long_loads_take_is_learned() -> None:
    world = World()
    world.tell(joined(model("A", load=2.0)))
    seen = []
    for seconds in (10.0, 20.0):
        world.tell(arrived("t", "r", model="A"))
        world.later(seconds)
        world.tell(up("A"))
        seen.append(world.state.residency.models[A].load_s)
        world.tell(finished("t"))
        world.tell(unload_asked("A"))
        world.tell(down("A"))
    assert seen == [10.0, 10.0 + NEWEST_LOAD_WEIGHT * 10.0]


def test_a_replica_serves_its_model_whatever_else_its_launcher_says() -> None:
    world = World()
    world.tell(joined(model("A", kind=ReplicaKind.SINGLE_PASS)))
    told = spec_of(world.state.residency.models[A], replica_of("other"))
    assert (told.models, told.kind) == (("A",), ReplicaKind.SINGLE_PASS)


def test_a_stop_is_firm_only_where_there_is_something_to_cut() -> None:
    world = World()
    world.tell(joined(model("A")))
    world.tell(arrived("t", model="A"))
    world.tell(up("A"))
    assert only(world.tell(unload_asked("A", firmly=True)), UnloadModel).firmly
    assert world.state.replicas[ReplicaId("box/A")].in_flight == 1
    world.tell(finished("t"))
    assert not world.state.replicas
