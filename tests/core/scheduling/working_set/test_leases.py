"""When places of paused runs are given up."""

from core.scheduling.builders import World, failed, placed
from core.scheduling.working_set.worlds import answered, begun, seat, sized, world
from luftpause.core.scheduling.events import WokeUp
from luftpause.core.scheduling.working_set.leases import MOVE_S
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits


def closed_at_home(*names: str, shut_s: float, moves: bool = True) -> World:
    """A run comes back to `a`, whose engine asked to be left alone."""
    made = world(*names, limits=WorkingSetLimits(forget=False, moves=moves))
    assert made.place(sized("t1", 1000, "r")) == "a"
    made.tell_all([begun("t1"), answered("t1", 1000, tool="look")])
    made.tell(sized("x1", 3000))
    made.tell(sized("x2", 1500))
    made.tell_all(
        [failed(turn, retry_after_s=shut_s) for turn in made.state.turns if made.state.turns[turn].replica == "a"]
    )
    made.hold(sized("t2", 1100, "r"))
    return made


def woken(made: World, seconds: int) -> list[tuple[str, str]]:
    """Let time pass in steps; return what went where."""
    went: list[tuple[str, str]] = []
    for _ in range(seconds):
        made.later(1.0)
        went += placed(made.tell(WokeUp()))
    return went


def test_whoever_waits_at_home_for_longer_than_moving_takes_goes_elsewhere() -> None:
    made = closed_at_home("a", "b", shut_s=60.0)
    assert seat(made, "a").kept == 1100
    assert woken(made, int(MOVE_S)) == []
    assert woken(made, 3) == [("t2", "b")]
    assert seat(made, "a").kept == 0


def test_without_moves_it_waits_on_at_home() -> None:
    made = closed_at_home("a", "b", shut_s=20.0, moves=False)
    assert woken(made, 19) == []
    assert woken(made, 3) == [("t2", "a")]


def test_it_waits_on_where_nothing_else_takes_it() -> None:
    made = closed_at_home("a", shut_s=20.0)
    assert woken(made, 19) == []
    assert woken(made, 3) == [("t2", "a")]
