"""Callers as people see them."""

from core.scheduling.builders import World, arrived, finished, probed, spec
from core.scheduling.working_set.worlds import sized, world
from luftpause.core.scheduling.caller_view import CALLERS_SHOWN, view_callers


def test_callers_are_told_with_their_turns_the_busiest_first() -> None:
    world = World(spec("a"))
    world.place(arrived("t1", caller="one"))
    world.place(arrived("t2", caller="two"))
    world.place(arrived("t3", caller="two"))
    seen = [(row.principal, row.caller, row.in_flight, row.held) for row in view_callers(world.state)]
    assert seen == [("anonymous", "two", 2, 0), ("anonymous", "one", 1, 0)]
    world.tell(finished("t1"))
    assert [row.caller for row in view_callers(world.state)] == ["two"]


def test_turns_in_flight_are_told_and_not_what_their_service_is_worth() -> None:
    made = world()
    made.place(sized("t1", 1000))
    assert [row.in_flight for row in view_callers(made.state)] == [1]


def test_held_turns_count_and_no_more_are_told_than_a_person_reads() -> None:
    world = World(spec("a"))
    world.tell(probed("a", healthy=False))
    for number in range(CALLERS_SHOWN + 5):
        world.tell(arrived(f"t{number}", caller=f"c{number:03}"))
    world.tell(arrived("again", caller="c054"))
    shown = view_callers(world.state)
    assert len(shown) == CALLERS_SHOWN
    assert (shown[0].caller, shown[0].in_flight, shown[0].held) == ("c054", 0, 2)
