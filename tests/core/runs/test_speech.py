from dataclasses import replace

import pytest

from core.runs.run_builders import NOW, after, history, intended, recorded, returned, said, sent, spawned, the_turn
from luftpause.core.model.ids import ModelName, RunId
from luftpause.core.runs.actions import CheckAnswer, TakeTurn
from luftpause.core.runs.advance import is_stale, without_conversation
from luftpause.core.runs.events import (
    AnswerRejected,
    Event,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunRecovered,
    TurnFailed,
)
from luftpause.core.runs.invariants import check
from luftpause.core.runs.messages import AssistantMessage, ToolMessage, UserMessage
from luftpause.core.runs.replay import conversation, recalled
from luftpause.core.runs.speech import generating
from luftpause.core.runs.state import Failing, Generating
from luftpause.core.runs.view import RunStatus, view

R = RunId("r")
DONE = RunFinished(run=R, result="42")
SCHEMA = {"type": "object"}


def test_the_model_hears_first_what_it_asked_for_and_then_what_people_sent() -> None:
    run = replace(after(spawned()).state.runs[R], unheard=("one", "two"))
    heard = generating(run, AssistantMessage(text="x"), now=NOW)
    assert heard.messages[1:] == (AssistantMessage(text="x"), UserMessage(text="one"), UserMessage(text="two"))
    assert heard.unheard == ()


def test_a_finished_run_goes_on_with_all_that_was_said_and_a_fresh_allowance() -> None:
    events = (spawned(budget=1), said("", "c1"), intended("c1"), returned("c1"), said("42"), DONE)
    over = after(*events).state
    over = without_conversation(over, over.runs[R])
    assert over.runs[R].messages == ()
    decision = after(sent("and now?"), state=recalled(over, history("r", *events)))
    check(decision.state)
    (turn,) = decision.actions
    assert isinstance(turn, TakeTurn)
    assert turn.messages[-2:] == (AssistantMessage(text="42"), UserMessage(text="and now?"))
    assert turn.messages[:-1] == conversation(history("r", *events))
    assert [spec.name for spec in turn.tools] == ["look"]
    assert (decision.state.running, view(decision.state, R, NOW).status) == (1, RunStatus.RUNNING)
    again = after(said("", "c2"), intended("c2"), returned("c2"), said("43"), state=decision.state)
    check(again.state)
    assert recorded(again) == (RunFinished(run=R, result="43"),)


@pytest.mark.parametrize("events", [(), (said("", "c1"), intended("c1"))])
def test_a_running_run_hears_a_message_before_its_next_turn(events: tuple[Event, ...]) -> None:
    decision = after(spawned(), *events, sent("wait"))
    assert decision.actions == ()
    assert decision.state.runs[R].unheard == ("wait",)
    following = (returned("c1"),) if events else (said("", "c1"), intended("c1"), returned("c1"))
    turn = the_turn(*following, state=decision.state)
    assert isinstance(turn.messages[-2], ToolMessage)
    assert turn.messages[-1] == UserMessage(text="wait")


def test_a_message_during_the_last_turn_keeps_the_run_going() -> None:
    turn = the_turn(spawned(), sent("wait"), said("42"))
    assert turn.messages[-2:] == (AssistantMessage(text="42"), UserMessage(text="wait"))


def test_a_message_between_the_answer_and_its_record_makes_that_end_stale() -> None:
    concluding = after(spawned(), said("42")).state
    assert not is_stale(concluding, DONE)
    decision = after(sent("wait"), state=concluding)
    assert isinstance(decision.actions[0], TakeTurn)
    assert is_stale(decision.state, DONE)
    assert not is_stale(decision.state, RunCancelled(run=R, why="x"))
    assert not is_stale(decision.state, RunFinished(run=RunId("unknown"), result=""))


def test_a_message_that_no_turn_was_told_is_told_after_a_restart() -> None:
    turn = the_turn(spawned(), sent("wait"), RunRecovered(run=R))
    assert turn.messages[-1] == UserMessage(text="wait")


@pytest.mark.parametrize("end", [RunFailed(run=R, error="gone"), RunCancelled(run=R, why="enough")])
def test_what_failed_or_was_cancelled_hears_nothing_more(end: Event) -> None:
    state = after(spawned(), end).state
    assert after(sent(), state=state).state is state


def test_what_is_about_to_fail_hears_nothing_more() -> None:
    state = after(spawned(), TurnFailed(run=R, error="gone")).state
    assert isinstance(state.runs[R].phase, Failing)
    assert after(sent(), state=state).state is state


def test_a_turn_that_cannot_be_had_goes_to_the_next_model_for_good() -> None:
    spawn = replace(spawned(), fallback_models=(ModelName("n"), ModelName("o")))
    assert the_turn(spawn, TurnFailed(run=R, error="gone")).model == "n"
    later = (TurnFailed(run=R, error="gone"), said("", "c1"), intended("c1"), returned("c1"))
    assert the_turn(spawn, *later).model == "n"
    assert the_turn(spawn, *later, RunRecovered(run=R)).model == "n"
    last = after(spawn, *later, TurnFailed(run=R, error="gone"), TurnFailed(run=R, error="gone too"))
    assert recorded(last) == (RunFailed(run=R, error="gone too"),)
    assert recorded(after(RunRecovered(run=R), state=last.state)) == recorded(last)
    assert view(last.state, R, NOW).model == "o"


def test_a_late_failure_of_a_turn_changes_nothing() -> None:
    state = after(spawned(), said("", "c1")).state
    assert after(TurnFailed(run=R, error="late"), state=state).state is state


def test_an_answer_with_a_shape_is_checked_before_it_counts() -> None:
    spawn = replace(spawned(), output_schema=SCHEMA)
    decision = after(spawn, said("{}"))
    assert decision.actions == (CheckAnswer(run=R, text="{}", schema=SCHEMA),)
    over = after(RunFinished(run=R, result="{}", structured={}), state=decision.state).state
    assert (view(over, R, NOW).result, view(over, R, NOW).structured) == ("{}", {})


def test_an_answer_that_does_not_fit_is_sent_back_once_and_then_fails_the_run() -> None:
    spawn = replace(spawned(), output_schema=SCHEMA)
    rejected = AnswerRejected(run=R, complaint="no JSON")
    repair = the_turn(spawn, said("well"), rejected)
    assert (repair.tools, repair.answer_schema) == ((), SCHEMA)
    assert repair.messages[-2] == AssistantMessage(text="well")
    assert isinstance(repair.messages[-1], UserMessage)
    assert "no JSON" in repair.messages[-1].text
    decision = after(spawn, said("well"), rejected, said("still well", "c1"), rejected)
    (failed,) = recorded(decision)
    assert isinstance(failed, RunFailed)
    assert "no JSON" in failed.error
    assert failed.error.endswith("still well")
    check(decision.state)


def test_a_verdict_on_an_answer_that_was_overtaken_changes_nothing() -> None:
    state = after(replace(spawned(), output_schema=SCHEMA), said("x"), sent("wait")).state
    assert isinstance(state.runs[R].phase, Generating)
    assert after(AnswerRejected(run=R, complaint="no"), state=state).state is state


def test_only_a_turn_that_must_answer_is_held_to_the_shape() -> None:
    spawn = replace(spawned(budget=1), output_schema=SCHEMA)
    assert the_turn(spawn).answer_schema is None
    assert the_turn(spawn, said("", "c1"), intended("c1"), returned("c1")).answer_schema == SCHEMA


def test_calls_that_nobody_answers_do_not_stay_in_the_conversation() -> None:
    state = after(spawned(budget=0), said("I would call", "c1")).state
    assert state.runs[R].messages[-1] == AssistantMessage(text="I would call")
