"""Why a turn waits for its model, and when the model is not the reason."""

from core.scheduling.builders import World, arrived, failed, spec
from core.scheduling.residency.words import joined, model, unload_asked, up
from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.reasons import HoldReason, LauncherAway, ModelLeaving, ModelLoading, WaitingForMemory
from luftpause.core.scheduling.residency.events import LauncherLost, LoadProgressed
from luftpause.core.scheduling.residency.holding import FRACTION_MIN, eta_s, why_model_held
from luftpause.core.scheduling.residency.reasons import Blocked, Obstacle


def why(world: World, turn: TurnArrived) -> HoldReason | None:
    return why_model_held(world.state.residency, world.state.serving, turn, world.now)


def test_the_reason_follows_the_model() -> None:
    world = World()
    world.tell(joined(model("A", 6, load=3.0), model("B", 6)))
    a, b = arrived("a", model="A"), arrived("b", model="B")
    world.tell(a)
    world.tell(b)
    assert why(world, a) == ModelLoading(model=ModelName("A"), eta_s=3.0)
    blocked = Blocked(by=ModelName("A"), obstacle=Obstacle.LOADING)
    assert why(world, b) == WaitingForMemory(model=ModelName("B"), blocked=blocked)
    world.tell(up("A"))
    assert why(world, a) is None
    world.tell(unload_asked("A", keep=True))
    assert isinstance(why(world, a), ModelLeaving)
    world.tell(failed("a"))
    assert isinstance(why(world, a), ModelLeaving)
    world.tell(LauncherLost(launcher=LauncherId("box")))
    assert why(world, b) == LauncherAway(model=ModelName("B"), launcher=LauncherId("box"))


def test_what_something_else_serves_or_no_launcher_has_waits_for_other_reasons() -> None:
    world = World(spec("r", "A", "m"))
    world.tell(joined(model("A")))
    assert why(world, arrived("t", model="A")) is None
    assert why(world, arrived("t", model="m")) is None


def test_progress_tells_how_long_a_load_takes_once_there_is_some() -> None:
    world = World()
    world.tell(joined(model("A", load=10.0)))
    world.tell(arrived("t", model="A"))
    world.later(2.0)
    known = world.state.residency.models[ModelName("A")]
    assert eta_s(known, world.now) == 8.0
    assert eta_s(known._replace(fraction=FRACTION_MIN / 2), world.now) == 8.0
    assert eta_s(known._replace(fraction=0.5), world.now) == 2.0
    world.tell(LoadProgressed(model=ModelName("A"), fraction=0.8))
    world.later(100.0)
    assert eta_s(known, world.now) == 0.0
