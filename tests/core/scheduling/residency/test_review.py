"""What is loaded, drained and unloaded, where several want room at once; the cases stand in the golden scenarios."""

from dataclasses import replace

from core.scheduling.builders import World, arrived, finished, placed, probed
from core.scheduling.residency.words import GIB, down, joined, load_failed, model, up
from luftpause.core.model.ids import DeviceId, ModelName, TurnId
from luftpause.core.model.models import Device
from luftpause.core.scheduling.actions import Action
from luftpause.core.scheduling.decide import next_deadline
from luftpause.core.scheduling.events import TurnAbandoned, WokeUp
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LoadAsked
from luftpause.core.scheduling.residency.state import ModelPhase, ResidencyLimits
from luftpause.core.scheduling.state import Limits


def orders(actions: tuple[Action, ...]) -> list[str]:
    """Return loads and unloads as `+A` and `-A`."""
    signs = {LoadModel: "+", UnloadModel: "-"}
    return [f"{signs[type(each)]}{each.model}" for each in actions if isinstance(each, LoadModel | UnloadModel)]


def rested(*names: str, ram: float = 10) -> World:
    """Models of 4 GiB each; these are up, used by nobody, and past their minimum residency."""
    world = World()
    world.tell(joined(*(model(name, 4) for name in "ABCDE"), ram=ram))
    for number, name in enumerate(names):
        world.tell(arrived(f"warm{number}", model=name))
        world.later(1.0)
        world.tell(up(name))
        world.tell(finished(f"warm{number}"))
    world.later(60.0)
    return world


def test_loads_that_fit_together_go_on_at_once() -> None:
    world = World()
    world.tell(joined(model("A", 4), model("B", 4)))
    assert orders(world.tell(arrived("a", model="A"))) == ["+A"]
    assert orders(world.tell(arrived("b", model="B"))) == ["+B"]


def test_room_that_is_made_for_one_is_not_taken_by_another() -> None:
    world = rested("A", "B")
    assert orders(world.tell(arrived("c", model="C", batch=True))) == ["-A"]
    # An interactive turn for D comes while A goes for C: B goes too, and D has what is free first.
    assert orders(world.tell(arrived("d", model="D"))) == ["-B"]
    assert orders(world.tell(arrived("e", model="E", batch=True))) == []
    assert orders(world.tell(down("A"))) == ["+D"]
    assert orders(world.tell(down("B"))) == ["+C"]


def test_what_fits_beside_a_swap_does_not_wait_for_it() -> None:
    world = rested("A", "B", ram=13)
    world.tell(arrived("c", model="C"))
    assert world.state.residency.models[ModelName("C")].phase is ModelPhase.LOADING
    assert orders(world.tell(arrived("d", model="D"))) == ["-A"]


def test_nothing_is_stopped_before_all_that_must_go_may() -> None:
    world = World()
    world.tell(joined(model("A", 4), model("B", 4), model("big", 9)))
    for name in "AB":
        world.tell(arrived(f"t-{name}", model=name))
        world.tell(up(name))
    world.later(60.0)
    world.tell(finished("t-A"))
    assert orders(world.tell(arrived("big", model="big"))) == []
    assert orders(world.tell(finished("t-B"))) == ["-A", "-B"]
    assert orders(world.tell(down("A"))) == []
    assert orders(world.tell(down("B"))) == ["+big"]


def test_a_deadline_is_there_for_whatever_ends_by_time_alone() -> None:
    world = World()
    world.tell(joined(model("A", 6, ttl=50.0), model("B", 6)))
    world.tell(arrived("a", model="A"))
    world.tell(up("A"))
    world.tell(arrived("b", model="B"))
    assert next_deadline(world.state) == 5.0
    world.later(5.0)
    world.tell(WokeUp())
    assert next_deadline(world.state) == 30.0
    world.tell(TurnAbandoned(turn=arrived("b").turn))
    world.tell(finished("a"))
    assert next_deadline(world.state) == 55.0


def test_a_wake_up_in_vain_orders_nothing() -> None:
    world = rested("A")
    for _ in range(3):
        world.later(0.3)
        assert world.tell(WokeUp()) == ()


def test_an_asked_load_that_cannot_be_is_given_up_and_says_why() -> None:
    world = World()
    world.tell(joined(model("huge", 20)))
    assert world.tell(LoadAsked(model=ModelName("huge"))) == ()
    assert world.state.residency.models[ModelName("huge")].asked is None
    assert "needs 20 GiB" in world.state.residency.models[ModelName("huge")].failed_why


def test_after_a_failed_load_whoever_waits_for_the_room_has_it() -> None:
    world = World()
    world.tell(joined(model("A", 6), model("B", 6)))
    world.tell(arrived("a", model="A"))
    world.tell(arrived("b", model="B"))
    assert orders(world.tell(load_failed("A"))) == ["+B"]
    assert placed(world.tell(up("B"))) == [("b", "box/B")]


def test_two_devices_do_not_share_their_room() -> None:
    world = World()
    told = joined(model("A", 6), model("G", 6, device="gpu0"), model("H", 6, device="gpu0"))
    gpu = Device(device=DeviceId("gpu0"), memory=10 * GIB)
    world.tell(replace(told, devices=(*told.devices, gpu)))
    assert orders(world.tell(arrived("a", model="A"))) == ["+A"]
    assert orders(world.tell(arrived("g", model="G"))) == ["+G"]
    assert orders(world.tell(arrived("h", model="H"))) == []


def test_a_model_that_drains_goes_on_to_though_its_engine_misses_a_probe() -> None:
    made = World(limits=Limits(residency=ResidencyLimits(max_wait_s=1.0, min_residency_s=0.0)))
    made.tell(joined(model("A", 6), model("B", 6)))
    made.tell_all([arrived("a", model="A"), up("A"), arrived("b", model="B")])
    made.later(50.0)
    made.tell(WokeUp())
    for healthy in (False, True):
        made.tell(probed("box/A", healthy=healthy))
        assert made.state.residency.models[ModelName("A")].phase is ModelPhase.DRAINING
    assert placed(made.tell(arrived("a2", model="A"))) == [], "it makes room"
    assert placed(made.tell(TurnAbandoned(turn=TurnId("b")))) == [("a2", "box/A")], "nobody needs it any more"


def test_an_engine_that_answers_nothing_any_more_is_started_anew_for_turns_that_wait_but_never_under_a_turn() -> None:
    made = World(limits=Limits(residency=ResidencyLimits(silent_s=30.0)))
    made.tell(joined(model("A", 6)))
    made.tell_all([arrived("a", model="A"), up("A"), probed("box/A", healthy=False), arrived("b", model="A")])
    made.later(100.0)
    assert orders(made.tell(probed("box/A", healthy=False))) == [], "whoever is in flight may get an answer yet"
    made.tell_all([finished("a"), probed("box/A"), finished("b")])
    made.tell(probed("box/A", healthy=False))
    made.later(100.0)
    assert orders(made.tell(probed("box/A", healthy=False))) == [], "nobody waits for it"
    made.tell_all([probed("box/A"), probed("box/A", healthy=False), arrived("c", model="A")])
    made.later(29.0)
    assert orders(made.tell(probed("box/A", healthy=False))) == []
    made.later(1.0)
    assert orders(made.tell(probed("box/A", healthy=False))) == ["-A"]
    assert orders(made.tell(down("A"))) == ["+A"]
    assert placed(made.tell(up("A"))) == [("c", "box/A")]
