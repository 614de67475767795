"""Models and memories as they are shown."""

from core.scheduling.builders import World, arrived, finished
from core.scheduling.residency.words import GIB, down, joined, load_failed, model, saved, unload_asked, up
from luftpause.core.model.ids import ModelName
from luftpause.core.scheduling.residency.actions import UnloadModel
from luftpause.core.scheduling.residency.events import LoadProgressed
from luftpause.core.scheduling.residency.state import ModelPhase
from luftpause.core.scheduling.residency.view import DeviceView, ModelView, view_devices, view_models


def seen(world: World) -> ModelView:
    return view_models(world.state, world.now)[0]


def test_a_model_is_told_through_its_life() -> None:
    world = World()
    world.tell(joined(model("A", 6, load=4.0, ttl=60.0), model("B", 5)))
    assert (seen(world).phase, seen(world).replica, seen(world).why) == (ModelPhase.DOWN, None, "")
    world.tell(arrived("t", model="A"))
    world.later(1.0)
    assert (seen(world).eta_s, seen(world).waiting, seen(world).why) == (3.0, 1, "turns wait for it")
    world.tell(LoadProgressed(model=ModelName("A"), fraction=0.5))
    assert seen(world).eta_s == 1.0
    world.tell(up("A", 5))
    assert (seen(world).in_flight, seen(world).ttl_left_s, seen(world).is_measured) == (1, None, True)
    world.tell(finished("t", tools=["look"]))
    world.later(10.0)
    assert (seen(world).ttl_left_s, seen(world).expected, seen(world).load_s) == (50.0, 1, 1.0)
    assert view_devices(world.state) == (
        DeviceView(launcher=seen(world).launcher, device=seen(world).device, budget=10 * GIB, taken=5 * GIB),
    )


def test_a_model_that_is_left_alone_says_for_how_long_and_why() -> None:
    world = World()
    world.tell(joined(model("A")))
    for number in range(3):
        world.tell_all([arrived(f"t{number}", model="A"), load_failed("A", "no such file")])
    world.later(0.5)
    assert (seen(world).retry_after_s, seen(world).failures, seen(world).why) == (1.5, 3, "no such file")
    world.later(2.0)
    assert seen(world).retry_after_s is None


def test_slots_and_parked_kv_are_told() -> None:
    world = World()
    world.tell(joined(model("A"), parking=GIB))
    world.tell(arrived("t", "r", model="A"))
    world.tell(up("A", slots=4))
    world.tell(finished("t", tools=["look"], tokens=1000))
    assert (seen(world).slots, seen(world).parked, seen(world).parked_size) == (4, 0, 0)
    (order,) = world.tell(unload_asked("A"))
    assert isinstance(order, UnloadModel)
    (verdict,) = order.kv
    assert verdict.file is not None
    world.tell(down("A", kv=(saved(verdict.file, 1010, 500),)))
    assert (seen(world).slots, seen(world).parked, seen(world).parked_size) == (0, 1, 500)


def test_models_stand_in_order_of_declaration() -> None:
    world = World()
    world.tell(joined(model("z"), model("a")))
    assert [each.name for each in view_models(world.state, world.now)] == ["z", "a"]
