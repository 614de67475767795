"""A launcher comes, comes back, or is lost."""

import math

from core.scheduling.builders import World, arrived, finished, placed, refused
from core.scheduling.residency.words import GIB, down, ending, engine, joined, model, up
from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.model.models import EnginePhase
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.actions import RefuseTurn
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherLost
from luftpause.core.scheduling.residency.joining import LOAD_S
from luftpause.core.scheduling.residency.state import Model, ModelPhase

A, B = ModelName("A"), ModelName("B")
BOX = LauncherId("box")


def known(world: World, name: ModelName = A) -> Model:
    return world.state.residency.models[name]


def test_what_is_up_already_serves_at_once() -> None:
    world = World()
    world.tell(joined(model("A"), engines=(engine("A", memory=2),)))
    assert known(world).phase is ModelPhase.UP
    assert known(world).memory == 2 * GIB
    assert world.place(arrived("t", model="A")) == "box/A"


def test_what_is_preloaded_is_loaded_as_soon_as_the_launcher_is_there() -> None:
    world = World()
    orders = world.tell(joined(model("A", 1, "preload"), model("B")))
    assert [each.model for each in orders if isinstance(each, LoadModel)] == ["A"]


def test_a_load_that_a_lost_launcher_does_not_have_is_ordered_anew_for_those_that_wait() -> None:
    world = World()
    world.tell(joined(model("A")))
    world.tell(arrived("t", model="A"))
    world.tell(LauncherLost(launcher=BOX))
    assert known(world).payer is None
    assert [each.model for each in world.tell(joined(model("A"))) if isinstance(each, LoadModel)] == ["A"]


def test_a_load_that_is_under_way_goes_on() -> None:
    world = World()
    world.tell(joined(model("A")))
    world.tell(arrived("t", model="A"))
    world.tell(LauncherLost(launcher=BOX))
    assert world.tell(joined(model("A"), engines=(engine("A", EnginePhase.LOADING),))) == ()
    assert placed(world.tell(up("A"))) == [("t", "box/A")]


def test_a_stop_that_got_lost_is_ordered_again_and_one_that_is_under_way_is_waited_for() -> None:
    world = World()
    world.tell(joined(model("A", ttl=0.0)))
    world.tell(arrived("t", model="A"))
    world.tell(up("A"))
    world.tell(finished("t"))
    assert known(world).phase is ModelPhase.STOPPING
    again = world.tell(joined(model("A", ttl=0.0), engines=(engine("A"),)))
    assert [each.model for each in again if isinstance(each, UnloadModel)] == ["A"]
    assert world.tell(joined(model("A", ttl=0.0), engines=(engine("A", EnginePhase.STOPPING),))) == ()
    world.tell(joined(model("A", ttl=0.0)))
    assert known(world).phase is ModelPhase.DOWN


def test_an_engine_that_stops_or_begins_anew_without_an_order_is_believed() -> None:
    world = World()
    world.tell(joined(model("A"), engines=(engine("A"),)))
    world.tell(joined(model("A"), engines=(engine("A", EnginePhase.LOADING),)))
    assert known(world).phase is ModelPhase.LOADING
    world.tell(joined(model("A"), engines=(engine("A", EnginePhase.STOPPING),)))
    assert known(world).phase is ModelPhase.STOPPING
    assert not world.state.replicas


def test_a_model_of_another_launcher_stays_with_that_one_until_it_is_away_and_down() -> None:
    world = World()
    world.tell(joined(model("A", 1), launcher="one"))
    world.tell(joined(model("A", 2), launcher="two"))
    assert known(world).launcher == "one"
    world.tell(LauncherLost(launcher=LauncherId("one")))
    world.tell(joined(model("A", 2), launcher="two"))
    assert (known(world).launcher, known(world).memory) == ("two", 2 * GIB)


def test_an_engine_of_a_model_that_nobody_declares_goes() -> None:
    world = World()
    orders = world.tell(joined(model("A"), engines=(engine("stray"),)))
    assert [each.model for each in orders if isinstance(each, UnloadModel)] == ["stray"]
    world.tell(down("stray"))
    assert set(world.state.residency.models) == {"A"}


def test_turns_for_a_model_that_is_declared_no_longer_are_refused() -> None:
    world = World()
    world.tell(joined(model("A", 6), model("B", 6)))
    world.tell(arrived("a", model="A"))
    world.tell(up("A"))
    world.tell(arrived("b", model="B"))
    assert refused(world.tell(joined(model("A", 6), engines=(engine("A"),)))) == ["b"]
    assert refused(world.tell(arrived("b2", model="B"))) == ["b2"]


def test_new_settings_make_what_was_learned_of_the_old_ones_forgotten() -> None:
    world = World()
    world.tell(joined(model("A", 1, build="x")))
    world.tell(arrived("t", model="A"))
    world.later(9.0)
    world.tell(up("A", 3))
    world.tell(finished("t"))
    world.tell(joined(model("A", 1, build="y"), engines=(engine("A", build="x"),)))
    world.tell(down("A"))
    assert (known(world).memory, known(world).is_measured) == (GIB, False)
    assert known(world).load_s == 9.0


def test_a_model_that_is_of_another_kind_now_leaves_the_old_one() -> None:
    world = World()
    world.tell(joined(model("A"), engines=(engine("A"),)))
    single = model("A", kind=ReplicaKind.SINGLE_PASS)
    orders = world.tell(joined(single, engines=(engine("A"),)))
    assert any(isinstance(each, UnloadModel) for each in orders)
    world.tell(down("A"))
    world.tell(arrived("t", model="A", kind=ReplicaKind.SINGLE_PASS))
    assert placed(world.tell(up("A"))) == [("t", "box/A")]


def test_figures_that_mean_nothing_are_guessed() -> None:
    world = World()
    world.tell(joined(model("A", -1, load=math.nan, ttl=math.inf)))
    assert (known(world).memory, known(world).load_s, known(world).spec.ttl_s) == (0, LOAD_S, None)


def test_a_launcher_that_nobody_knows_cannot_be_lost() -> None:
    world = World()
    assert world.tell(LauncherLost(launcher=BOX)) == ()


def test_a_launcher_that_ends_has_what_waits_for_its_models_refused_as_shut_down() -> None:
    world = World()
    world.tell(joined(model("A"), model("B")))
    world.tell_all([arrived("t1", model="A"), up("A"), arrived("t2", model="B")])
    assert known(world, B).phase is ModelPhase.LOADING
    world.tell(ending(engine("A"), engine("B", EnginePhase.LOADING)))
    assert known(world).is_dropped
    (late,) = [each.why for each in world.tell(arrived("t3", model="A")) if isinstance(each, RefuseTurn)]
    (held,) = [each.why for each in world.tell(down("B")) if isinstance(each, RefuseTurn)]
    assert {late.reason, held.reason} == {RefusalReason.SHUTTING_DOWN}
    assert held.message == "model 'B' is not to be had: its launcher 'box' is shutting down"
    assert world.state.turns, "what is in flight goes on"
    world.tell_all([finished("t1"), down("A")])
    (gone,) = [each.why for each in world.tell(arrived("t4", model="A")) if isinstance(each, RefuseTurn)]
    assert gone.reason is RefusalReason.UNKNOWN_MODEL


def test_a_launcher_that_comes_back_after_its_end_has_its_models_as_before() -> None:
    world = World()
    world.tell_all([joined(model("A")), ending(), LauncherLost(launcher=BOX), joined(model("A"))])
    world.tell(arrived("t", model="A"))
    assert placed(world.tell(up("A"))) == [("t", "box/A")]
    world.tell(joined())
    (why,) = [each.why for each in world.tell(arrived("t2", model="A")) if isinstance(each, RefuseTurn)]
    assert why.reason is RefusalReason.UNKNOWN_MODEL, "dropped by its settings, not by an end"
