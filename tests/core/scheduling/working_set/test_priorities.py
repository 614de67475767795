"""Which priority a turn has in its engine's own queue."""

from dataclasses import replace

import pytest

from core.scheduling.builders import World, arrived, only, probed, spec
from core.scheduling.working_set.worlds import answered, sized, told
from luftpause.core.model.replicas import Priorities
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits


def world(order: Priorities | None, *, native: bool = True) -> World:
    made = World(spec("a"), limits=Limits(working_set=WorkingSetLimits(native_priority=native)))
    made.tell(replace(told("a", 10_000), priorities=order))
    return made


def sent(made: World, arrival: TurnArrived) -> tuple[int | None, bool]:
    order = only(made.tell(arrival), PlaceTurn)
    assert only(made.tell(arrival), PlaceTurn) == order, "offered again, it is the same"
    return order.priority, order.owns_priority


@pytest.mark.parametrize(
    ("order", "expected"),
    [(Priorities.LOWER_FIRST, [1, 3, 0, 2]), (Priorities.HIGHER_FIRST, [-1, -3, 0, -2]), (None, [None] * 4)],
)
def test_interactive_is_before_batch_and_what_goes_on_before_what_begins(
    order: Priorities | None, expected: list[int | None]
) -> None:
    made = world(order)
    told_as = []
    for number in (1, 2):
        for batch in (False, True):
            turn = f"{'b' if batch else 'i'}{number}"
            told_as.append(sent(made, sized(turn, 1000 * number, turn[0], batch=batch)))
            made.tell(answered(turn, 1000 * number, tool="look"))
    assert told_as == [(each, True) for each in expected]


def test_without_the_piece_a_clients_own_priority_is_its_business() -> None:
    assert sent(world(Priorities.LOWER_FIRST, native=False), sized("t", 10)) == (None, False)


def test_with_turn_admission_too() -> None:
    plain = World(spec("a"))
    plain.tell(replace(probed("a"), priorities=Priorities.LOWER_FIRST))
    assert sent(plain, arrived("t")) == (None, False)


def test_what_stands_alone_begins() -> None:
    alone = replace(sized("t", 10), shape=TurnShape.ALONE)
    assert sent(world(Priorities.LOWER_FIRST), alone) == (3, True)


def test_an_engine_that_fell_ill_may_be_another_one_when_it_is_back() -> None:
    made = world(Priorities.LOWER_FIRST)
    made.tell(probed("a", healthy=False))
    made.tell(told("a", 10_000))
    assert sent(made, sized("t", 10)) == (None, True)
