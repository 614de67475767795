"""How long the place of a run is kept that waits for runs that it began."""

from dataclasses import replace

import pytest

from core.scheduling.builders import World, spec
from core.scheduling.working_set.worlds import answered, begun, child, seat, sized, told
from luftpause.core.model.ids import PrincipalId, RunId, TurnId
from luftpause.core.scheduling.events import TurnAbandoned, WokeUp
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.trees import LOOKED_AT_MAX

TTL_S = 16.0
"""As long a place is kept that is worth 20 s for a tool that nobody knows."""
WORTH_S = 20.0


def waiting(*, kv: int = 20_000, trees: bool = True) -> World:
    """Return a world whose interactive run `p` is out on `await`."""
    made = World(spec("a"), limits=Limits(working_set=WorkingSetLimits(trees=trees)))
    made.tell(told("a", kv))
    made.place(sized("p1", 1000, "p", batch=False))
    made.tell(answered("p1", 1000, tool="await"))
    return made


def begin(made: World, turn: str, run: str, parent: str = "p") -> None:
    made.place(replace(child(turn, parent), run=run_id(run)))
    made.tell(begun(turn))


def run_id(run: str) -> RunId:
    return RunId(run)


def pass_time(made: World, seconds: float) -> None:
    made.later(seconds)
    made.tell(WokeUp())


def test_without_children_the_tool_tells() -> None:
    made = waiting()
    pass_time(made, TTL_S - 0.5)
    assert seat(made).kept
    pass_time(made, 1.0)
    assert not seat(made).kept


def test_with_a_child_at_work_it_is_kept_for_as_long_as_it_is_worth_and_no_longer() -> None:
    made = waiting()
    begin(made, "c1", "c")
    pass_time(made, TTL_S + 0.5)
    assert seat(made).kept
    pass_time(made, WORTH_S - TTL_S)
    assert not seat(made).kept
    parent = made.run("p")
    assert parent is not None
    assert parent.loose


def test_when_all_have_ended_the_tool_tells() -> None:
    made = waiting()
    begin(made, "c1", "c")
    made.tell(answered("c1", 1000))
    pass_time(made, TTL_S + 0.5)
    assert not seat(made).kept


@pytest.mark.parametrize(("taught", "kept"), [(1.0, True), (500.0, False)])
def test_the_slowest_child_counts_by_what_its_tool_taught(taught: float, kept: bool) -> None:
    made = waiting()
    for number in range(30):
        made.place(sized(f"t{number}", 10, f"r{number}"))
        made.tell(answered(f"t{number}", 10, tool="look"))
    made.later(taught)
    for number in range(30):
        made.tell(sized(f"u{number}", 10, f"r{number}"))
        made.tell(TurnAbandoned(turn=TurnId(f"u{number}")))
    made.place(sized("p2", 1000, "p", batch=False))
    made.tell(answered("p2", 1000, tool="await"))
    begin(made, "c1", "c")
    begin(made, "d1", "d")
    parent = made.run("p")
    assert parent is not None
    assert parent.kept_until is not None
    pass_time(made, parent.kept_until - made.now - 0.3)
    made.tell(answered("c1", 1000, tool="look"))
    pass_time(made, 0.6)
    parent = made.run("p")
    assert parent is not None
    assert bool(parent.kept) is kept


def test_of_too_many_children_the_last_is_far() -> None:
    made = waiting(kv=1_000_000)
    parent = made.run("p")
    assert parent is not None
    until = parent.kept_until
    for number in range(LOOKED_AT_MAX + 1):
        begin(made, f"c{number}", f"c{number}")
    assert until is not None
    pass_time(made, until - made.now + 0.2)
    parent = made.run("p")
    assert parent is not None
    assert parent.loose


def test_a_stranger_that_names_it_as_its_parent_is_none_of_its_children() -> None:
    made = waiting()
    stranger = replace(child("s1", "p"), principal=PrincipalId("somebody else"))
    made.place(stranger)
    pass_time(made, TTL_S + 0.5)
    assert not seat(made).kept


def test_who_waits_for_one_that_waits_keeps_no_place_that_others_need() -> None:
    made = waiting()
    begin(made, "b1", "b", parent="nobody")
    begin(made, "q1", "q")
    made.tell(answered("q1", 1000, tool="await"))
    made.hold(sized("x1", 20_000, "x", batch=False))
    assert seat(made).kept == 1100 + 1100
    made.tell(replace(child("r1", "q"), run=run_id("r")))
    assert seat(made).kept == 1100
    parent, middle = made.run("p"), made.run("q")
    assert parent is not None
    assert middle is not None
    assert (parent.loose, middle.loose) == (True, False)
    assert parent.home == "a"


def test_a_strangers_grandchild_moves_nobody_nor_one_for_whom_there_is_room() -> None:
    made = waiting()
    begin(made, "q1", "q")
    made.tell(answered("q1", 1000, tool="await"))
    begin(made, "r1", "r", parent="q")
    assert seat(made).kept == 1100 + 1100
    made.hold(sized("x1", 20_000, "x", batch=False))
    made.tell(replace(child("s1", "q"), principal=PrincipalId("somebody else")))
    assert seat(made).kept == 1100 + 1100


def test_without_the_piece_the_tool_tells() -> None:
    made = waiting(trees=False)
    begin(made, "q1", "q")
    made.tell(answered("q1", 1000, tool="await"))
    begin(made, "r1", "r", parent="q")
    assert seat(made).kept == 1100 + 1100
    pass_time(made, TTL_S + 0.5)
    assert not seat(made).kept
