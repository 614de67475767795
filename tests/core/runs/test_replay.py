from core.runs.run_builders import NOW, after, history, intended, said, spawned
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import RunFinished
from luftpause.core.runs.invariants import check
from luftpause.core.runs.replay import replay, unfinished
from luftpause.core.runs.state import Failed
from luftpause.core.runs.view import view


def test_a_history_gives_the_state_that_was_lived() -> None:
    events = (spawned(), said("", "c1"), intended("c1"))
    assert replay([history("r", *events)]) == after(*events).state


def test_parents_are_replayed_before_children_whatever_the_order() -> None:
    child = history("kid", spawned("kid", parent="r"), said("x", run="kid"))
    parent = history("r", spawned())
    assert replay([child, parent]) == replay([parent, child])
    assert replay([child, parent]).runs[RunId("r")].subtree.turns == 1


def test_a_damaged_history_makes_a_failed_run_that_is_not_resumed() -> None:
    state = replay([history("r", spawned(), damage="line 3 is broken")])
    assert state.runs[RunId("r")].phase == Failed(error="line 3 is broken")
    assert unfinished(state) == ()


def test_a_damaged_history_without_a_beginning_is_quarantined_under_its_handle() -> None:
    state = replay([history("r", damage="line 1 is broken")])
    assert view(state, RunId("r"), NOW).error == "line 1 is broken"
    check(state)
    assert unfinished(state) == ()


def test_an_ending_outlives_whatever_was_lost_before_it() -> None:
    ending = RunFinished(run=RunId("r"), result="42")
    for kept in ((spawned(), ending), (ending,)):
        state = replay([history("r", *kept, damage="line 2 is broken")])
        assert (view(state, RunId("r"), NOW).result, view(state, RunId("r"), NOW).error) == ("42", None)
        check(state)


def test_unfinished_runs_come_parents_first() -> None:
    events = (spawned("z"), spawned("b", parent="z"), spawned("a", parent="b"), spawned("done"))
    state = after(*events, RunFinished(run=RunId("done"), result="")).state
    assert unfinished(state) == ("z", "b", "a")
