"""Who is wanted first."""

from core.scheduling.builders import World, arrived
from core.scheduling.residency.words import joined, model, up
from luftpause.core.model.ids import Instant, ModelName
from luftpause.core.scheduling.residency.demand import Wish, in_order, wish_for
from luftpause.core.scheduling.residency.events import LoadAsked
from luftpause.core.scheduling.residency.state import ResidencyLimits

LIMITS = ResidencyLimits(max_wait_s=30.0)


def world() -> World:
    """A is up and busy, so that all others wait."""
    made = World()
    made.tell(joined(*(model(name, 6) for name in "ABCD")))
    made.tell(arrived("a", model="A"))
    made.tell(up("A"))
    return made


def wishes(made: World) -> list[Wish]:
    residency = made.state.residency
    found = [wish_for(residency, each, LIMITS, made.now, is_served=False) for each in residency.models.values()]
    return in_order([each for each in found if each is not None and each.model != "A"])


def test_interactive_turns_come_before_batch_and_of_each_the_first() -> None:
    made = world()
    made.hold(arrived("b", model="B", batch=True))
    made.later(1)
    made.hold(arrived("d", model="D"))
    made.later(1)
    made.hold(arrived("c", model="C"))
    assert [wish.model for wish in wishes(made)] == ["D", "C", "B"]
    assert [wish.turn for wish in wishes(made)] == ["d", "c", "b"]


def test_a_batch_turn_that_has_waited_too_long_is_behind_nobody() -> None:
    made = world()
    made.hold(arrived("b", model="B", batch=True))
    made.later(20)
    made.hold(arrived("c", model="C"))
    made.now = Instant(30.0)
    assert [wish.model for wish in wishes(made)] == ["B", "C"]


def test_what_an_operator_asks_for_comes_after_turns() -> None:
    made = world()
    made.tell(LoadAsked(model=ModelName("B")))
    made.later(1)
    made.hold(arrived("c", model="C", batch=True))
    assert [wish.model for wish in wishes(made)] == ["C", "B"]
    assert wishes(made)[1].turn is None


def test_what_something_else_serves_is_not_wanted() -> None:
    made = world()
    made.hold(arrived("b", model="B"))
    residency = made.state.residency
    assert wish_for(residency, residency.models[ModelName("B")], LIMITS, made.now, is_served=True) is None
