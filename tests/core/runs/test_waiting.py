from dataclasses import replace

from core.runs.run_builders import NOW, after, history, recorded, said, sent, spawned, the_turn
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import RunCancelled, RunFailed, RunFinished, RunRecovered, RunsAwaited, RunSpawned
from luftpause.core.runs.invariants import check
from luftpause.core.runs.messages import UserMessage
from luftpause.core.runs.replay import replay
from luftpause.core.runs.view import view
from luftpause.core.runs.waiting import all_over, awaited

A, B, R = RunId("a"), RunId("b"), RunId("r")


def later(*runs: str) -> RunSpawned:
    return replace(spawned("r"), after=tuple(map(RunId, runs)))


BOTH = (spawned("a"), spawned("b"), later("a", "b"))
A_OVER, B_OVER = RunFinished(run=A, result="one"), RunFailed(run=B, error="engine gone")


def test_a_run_begins_once_all_that_it_comes_after_are_over_and_hears_how_they_ended() -> None:
    state = after(*BOTH).state
    check(state)
    assert view(state, R, NOW).phase == "waiting_for_runs"
    assert after(*BOTH).actions == ()
    assert recorded(after(A_OVER, state=state)) == ()
    decision = after(A_OVER, B_OVER, state=state)
    (begin,) = recorded(decision)
    assert isinstance(begin, RunsAwaited)
    turn = the_turn(begin, state=decision.state)
    assert turn.messages == (UserMessage(text="task of r"), UserMessage(text=begin.text))
    assert "Result of a:\none" in begin.text
    assert "b failed: engine gone" in begin.text
    begun = after(begin, state=decision.state).state
    check(begun)
    assert not begun.waiting
    assert after(begin, state=begun).state is begun


def test_what_is_over_already_is_not_waited_for() -> None:
    decision = after(spawned("a"), A_OVER, later("a"))
    assert [type(event) for event in recorded(decision)] == [RunsAwaited]


def test_a_restart_begins_what_may_begin() -> None:
    state = after(*BOTH, A_OVER, B_OVER).state
    assert [type(event) for event in recorded(after(RunRecovered(run=R), state=state))] == [RunsAwaited]
    early = after(*BOTH, A_OVER).state
    assert after(RunRecovered(run=R), state=early).actions == ()


def test_a_run_that_was_cancelled_or_is_lost_holds_up_nothing() -> None:
    state = after(spawned("a"), later("a", "lost"), RunCancelled(run=A, why="enough")).state
    assert all_over(state, state.runs[R])
    text = awaited(state, state.runs[R]).text
    assert "a gave no result: enough" in text
    assert "lost gave no result: nothing is known of it" in text


def test_a_run_that_ends_while_it_waits_waits_no_more() -> None:
    state = after(*BOTH, RunCancelled(run=R, why="enough")).state
    check(state)
    assert not state.waiting
    assert recorded(after(A_OVER, B_OVER, state=state)) == ()


def test_messages_sent_meanwhile_come_after_the_results() -> None:
    state = after(*BOTH, sent("hurry"), A_OVER, B_OVER).state
    turn = the_turn(awaited(state, state.runs[R]), state=state)
    assert turn.messages[-1] == UserMessage(text="hurry")


def test_the_index_does_not_hang_on_whose_history_comes_first() -> None:
    histories = [history("r", later("a")), history("a", spawned("a"), said("one", run="a"), A_OVER)]
    first, second = replay(histories), replay(histories[::-1])
    assert first == second
