"""A turn that offers no tools and answers none, in a run that is out on a tool or goes out on one meanwhile."""

import pytest

from core.scheduling.builders import World, arrived, finished, probed, spec
from luftpause.core.model.ids import ModelName, RunId, TurnId
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.events import Event, ReplicaAdded, RunPhase, TurnAbandoned, TurnFailed
from luftpause.core.scheduling.state import Run


def world() -> World:
    made = World()
    for name in "ab":
        made.tell_all([ReplicaAdded(spec=spec(name)), probed(name)])
    return made


def the_run(made: World) -> Run:
    return made.state.runs[RunId("r"), ModelName("m")]


ENDS: dict[str, Event] = {
    "is answered": finished("title"),
    "fails": TurnFailed(turn=TurnId("title"), cause="x"),
    "is left": TurnAbandoned(turn=TurnId("title")),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("comes", ["before the turn", "before its end", "after it"])
def test_however_it_ends_the_run_stays_out_on_its_tool(comes: str, how: str) -> None:
    made, title = world(), arrived("title", "r", shape=TurnShape.ASIDE)
    if comes == "before the turn":
        made.tell(title)
    made.tell(arrived("t1", "r"))
    home = the_run(made).home
    if comes == "before its end":
        made.tell(title)
    made.tell(finished("t1", tools=["look"]))
    if comes == "after it":
        made.tell(title)
        assert (the_run(made).phase, the_run(made).out_on) == (RunPhase.PAUSED, "look")
    made.later(1.0)
    made.tell(ENDS[how])
    assert the_run(made).phase is RunPhase.PAUSED
    assert the_run(made).out_on == ("look" if comes == "after it" else None), "who is not at rest is not timed"
    assert made.place(arrived("t2", "r")) == home
    made.tell(finished("t2"))
    assert the_run(made).phase is RunPhase.IDLE


def test_in_a_run_that_is_not_out_it_is_a_turn_like_any_other() -> None:
    made = world()
    made.tell(arrived("t1", "r", shape=TurnShape.ASIDE))
    assert the_run(made).phase is RunPhase.GENERATING
    made.tell(finished("t1"))
    assert (the_run(made).phase, the_run(made).home) == (RunPhase.IDLE, "a")
    assert made.place(arrived("t2", "r", shape=TurnShape.ASIDE)) == "a"
    made.tell(finished("t2", tools=1))
    assert the_run(made).phase is RunPhase.PAUSED, "whatever was offered, it called"
