"""What stands in a model's way by arithmetic: memory and groups."""

from core.scheduling.builders import World, arrived, finished
from core.scheduling.residency.words import GIB, joined, model, up
from luftpause.core.model.ids import ModelName
from luftpause.core.model.models import ModelGroup
from luftpause.core.scheduling.residency.events import PinAsked
from luftpause.core.scheduling.residency.room import Shortage, beside, budget_of, excludes, shortage
from luftpause.core.scheduling.residency.state import Model

ONE = ModelGroup(name="one", swap=True)
ALONE = ModelGroup(name="alone", exclusive=True)
PERSISTENT = ModelGroup(name="small", persistent=True)


def world() -> World:
    """A is up with 6 of 10; the others are down."""
    made = World()
    specs = (model("A", 6), model("B", 5), model("C", 4), model("D", 11), model("gpu", 1, device="gpu0"))
    made.tell(joined(*specs))
    made.tell(arrived("t", model="A"))
    made.tell(up("A"))
    made.tell(finished("t"))
    return made


def known(made: World, name: str) -> Model:
    return made.state.residency.models[ModelName(name)]


def test_what_can_fit_once_others_are_unloaded_lacks_nothing() -> None:
    made = world()
    assert shortage(made.state.residency, known(made, "B")) is None
    assert [other.name for other in beside(made.state.residency, known(made, "B"))] == ["A"]


def test_what_is_larger_than_all_memory_or_needs_a_device_that_is_not_there_lacks_room() -> None:
    made = world()
    assert shortage(made.state.residency, known(made, "D")) == Shortage(11 * GIB, 10 * GIB, 0)
    assert budget_of(made.state.residency, known(made, "gpu")) == 0
    assert shortage(made.state.residency, known(made, "gpu")) == Shortage(GIB, 0, 0)


def test_what_is_kept_up_takes_room_for_good() -> None:
    made = world()
    made.tell(PinAsked(model=ModelName("A"), on=True))
    assert shortage(made.state.residency, known(made, "B")) == Shortage(5 * GIB, 10 * GIB, 6 * GIB)
    assert shortage(made.state.residency, known(made, "C")) is None


def test_groups_exclude_each_other_as_they_say() -> None:
    made = World()
    specs = (model("a", group=ONE), model("b", group=ONE), model("x", group=ALONE), model("y", group=ALONE), model("z"))
    made.tell(joined(*specs, model("s", group=PERSISTENT)))
    a, b, x, y, z, s = (known(made, name) for name in "abxyzs")
    assert excludes(a, b)
    assert excludes(x, a)
    assert excludes(x, z)
    assert not excludes(x, s)
    assert not excludes(x, y)
    assert not excludes(a, x)
    assert not excludes(z, a)


def test_a_rival_of_its_group_that_is_pinned_is_named() -> None:
    made = World()
    made.tell(joined(model("a", group=ONE), model("b", 1, "pinned", group=ONE)))
    made.tell(arrived("t", model="b"))
    made.tell(up("b"))
    found = shortage(made.state.residency, known(made, "a"))
    assert found is not None
    assert found.rival == "b"
