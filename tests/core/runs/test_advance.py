from dataclasses import replace

import pytest

from core.runs.run_builders import after, intended, returned, said, spawned, tool
from luftpause.core.model.ids import PrincipalId, RunId, ToolCallId
from luftpause.core.runs.actions import Action, CallTool, CancelWork, CheckCall, Record, ReportEnd, TakeTurn
from luftpause.core.runs.advance import BUDGET_SPENT_TEXT
from luftpause.core.runs.calls import OUTCOME_UNKNOWN_TEXT
from luftpause.core.runs.events import (
    Event,
    Origin,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunRecovered,
    RunSpawned,
    ToolCallRejected,
)
from luftpause.core.runs.go_on import ANCESTOR_CANCELLED, cancellations
from luftpause.core.runs.invariants import check
from luftpause.core.runs.messages import SystemMessage, ToolMessage, UserMessage

R = RunId("r")


def the_turn(*events: Event) -> TakeTurn:
    decision = after(*events)
    check(decision.state)
    (action,) = decision.actions
    assert isinstance(action, TakeTurn)
    return action


def test_the_task_is_the_first_user_message_unchanged() -> None:
    assert the_turn(spawned()).messages == (UserMessage(text="task of r"),)


def test_a_system_prompt_stands_before_the_task() -> None:
    plain = spawned()
    spawn = RunSpawned(
        run=plain.run,
        task=plain.task,
        model=plain.model,
        service_class=plain.service_class,
        caller=plain.caller,
        principal=plain.principal,
        system="be brief",
    )
    assert the_turn(spawn).messages == (SystemMessage(text="be brief"), UserMessage(text="task of r"))


def test_the_first_turn_offers_the_runs_tools_and_one_call_per_reply() -> None:
    turn = the_turn(spawned(tools=("a", "b")))
    assert (turn.tools, turn.max_tokens, turn.parallel_tool_calls) == ((tool("a"), tool("b")), 256, False)


def test_a_run_without_tool_budget_is_offered_no_tools() -> None:
    assert the_turn(spawned(budget=0)).tools == ()


def test_a_reply_without_calls_ends_the_run_with_its_text() -> None:
    decision = after(spawned(), said("42"))
    assert decision.actions == (Record(event=RunFinished(run=R, result="42")),)
    over = after(RunFinished(run=R, result="42"), state=decision.state)
    assert over.actions == (CancelWork(run=R), ReportEnd(run=R, principal=PrincipalId("p")))
    assert over.state.running == 0


def test_every_call_of_a_reply_is_checked_at_once() -> None:
    decision = after(spawned(), said("", "c1", "c2"))
    assert [action.call for action in decision.actions if isinstance(action, CheckCall)] == ["c1", "c2"]


def test_a_call_is_made_only_once_its_intent_is_recorded() -> None:
    (action,) = after(spawned(), said("", "c1"), intended("c1")).actions
    assert action == CallTool(run=R, call=ToolCallId("c1"), tool="look", arguments="{}", key="r/1/c1")


def test_the_next_turn_waits_for_all_calls_and_hears_them_in_the_order_asked() -> None:
    begun = (spawned(), said("", "c1", "c2"), intended("c1"), intended("c2"))
    assert after(*begun, returned("c2", "two")).actions == ()
    turn = the_turn(*begun, returned("c2", "two"), returned("c1", "one"))
    assert turn.messages[-2:] == (
        ToolMessage(call=ToolCallId("c1"), text="one"),
        ToolMessage(call=ToolCallId("c2"), text="two"),
    )


def test_a_rejected_call_is_told_to_the_model_and_counts_as_failed() -> None:
    decision = after(spawned(), said("", "c1"), ToolCallRejected(run=R, call=ToolCallId("c1"), text="no such tool"))
    (turn,) = decision.actions
    assert isinstance(turn, TakeTurn)
    assert turn.messages[-1] == ToolMessage(call=ToolCallId("c1"), text="no such tool")
    assert decision.state.runs[R].own.failed_tool_calls == 1


def test_a_failed_call_counts_as_failed_once_however_often_it_returns() -> None:
    begun = (spawned(), said("", "c1", "c2"), intended("c1"), intended("c2"))
    state = after(*begun, returned("c1", failed=True), returned("c1", failed=True)).state
    assert (state.runs[R].own.tool_calls, state.runs[R].own.failed_tool_calls) == (2, 1)


def test_a_spent_budget_offers_no_tools() -> None:
    assert the_turn(spawned(budget=1), said("", "c1"), intended("c1"), returned("c1")).tools == ()


def test_calls_beyond_the_budget_are_not_made_and_the_model_hears_so() -> None:
    decision = after(spawned(budget=1), said("", "c1", "c2"))
    assert [action.call for action in decision.actions if isinstance(action, CheckCall)] == ["c1"]
    turn = the_turn(spawned(budget=1), said("", "c1", "c2"), intended("c1"), returned("c1"))
    assert turn.messages[-1] == ToolMessage(call=ToolCallId("c2"), text=BUDGET_SPENT_TEXT)


def test_whatever_the_model_says_after_the_budget_is_the_result() -> None:
    decision = after(spawned(budget=0), said("I would call", "c1"))
    assert decision.actions == (Record(event=RunFinished(run=R, result="I would call")),)


def test_work_is_counted_for_the_run() -> None:
    own = after(spawned(), said("", "c1"), intended("c1"), returned("c1"), said("done")).state.runs[R].own
    assert (own.turns, own.tool_calls, own.prompt_tokens, own.completion_tokens) == (2, 1, 20, 10)
    assert (own.turn_ms, own.tool_ms) == (200, 30)


def test_recovery_asks_again_for_a_turn_that_is_not_on_record() -> None:
    assert the_turn(spawned(), RunRecovered(run=R)) == the_turn(spawned())


def test_recovery_makes_a_repeatable_call_again_with_the_same_key() -> None:
    begun = (spawned(), said("", "c1"), intended("c1", repeatable=True))
    assert after(*begun, RunRecovered(run=R)).actions == after(*begun).actions


def test_recovery_never_repeats_a_call_that_is_not_repeatable_and_tells_the_model() -> None:
    turn = the_turn(spawned(), said("", "c1"), intended("c1", repeatable=False), RunRecovered(run=R))
    assert turn.messages[-1] == ToolMessage(call=ToolCallId("c1"), text=OUTCOME_UNKNOWN_TEXT)


def test_recovery_checks_a_call_without_intent_again() -> None:
    actions = after(spawned(), said("", "c1", "c2"), intended("c1", repeatable=False), RunRecovered(run=R)).actions
    assert [type(action) for action in actions] == [CheckCall]


def test_recovery_records_an_end_that_was_not_recorded() -> None:
    actions = after(spawned(), said("42"), RunRecovered(run=R)).actions
    assert actions == (Record(event=RunFinished(run=R, result="42")),)


def test_cancelling_a_run_cancels_all_that_runs_below_it() -> None:
    family = (
        spawned("r"),
        spawned("kid", parent="r"),
        spawned("grandkid", parent="kid"),
        RunFinished(run=RunId("kid"), result="early"),
    )
    decision = after(*family, RunCancelled(run=R, why="test"))
    assert decision.actions == (
        CancelWork(run=R),
        ReportEnd(run=R, principal=PrincipalId("p")),
        Record(event=RunCancelled(run=RunId("grandkid"), why=ANCESTOR_CANCELLED)),
    )


def test_cancelling_a_run_that_is_over_still_cancels_all_that_runs_below_it() -> None:
    over = RunFinished(run=R, result="early")
    kid_over = RunFinished(run=RunId("kid"), result="early")
    state = after(spawned("r"), spawned("kid", parent="r"), spawned("grandkid", parent="kid"), over, kid_over).state
    assert cancellations(state, R, "why") == (RunCancelled(run=RunId("grandkid"), why=ANCESTOR_CANCELLED),)
    assert cancellations(state, RunId("grandkid"), "why") == (RunCancelled(run=RunId("grandkid"), why="why"),)
    assert cancellations(state, RunId("kid"), "why") == cancellations(state, R, "why")


def test_a_child_of_a_cancelled_run_does_not_start() -> None:
    decision = after(spawned(), RunCancelled(run=R, why="test"), spawned("kid", parent="r"))
    assert decision.actions == (Record(event=RunCancelled(run=RunId("kid"), why=ANCESTOR_CANCELLED)),)


def test_a_failed_run_leaves_its_children_alone() -> None:
    decision = after(spawned(), spawned("kid", parent="r"), RunFailed(run=R, error="engine gone"))
    assert decision.actions == (CancelWork(run=R), ReportEnd(run=R, principal=PrincipalId("p")))


NOTHING: tuple[Action, ...] = ()


@pytest.mark.parametrize(
    "event",
    [
        spawned(),
        said("late"),
        intended("c1"),
        returned("c1"),
        RunRecovered(run=R),
        RunFinished(run=R, result="again"),
        said("unknown", run="nobody"),
    ],
)
def test_nothing_changes_a_run_that_is_over(event: Event) -> None:
    over = after(spawned(), said("42"), RunFinished(run=R, result="42")).state
    late = after(event, state=over)
    assert (late.state, late.actions) == (over, NOTHING)


def test_events_out_of_place_change_nothing() -> None:
    generating = after(spawned()).state
    assert after(returned("c1"), state=generating).state == generating
    calling = after(spawned(), said("", "c1"), intended("c1")).state
    for event in (said("twice"), intended("c1"), intended("c9"), returned("c9")):
        assert after(event, state=calling).state == calling


def test_a_run_asks_whose_child_it_is_until_it_knows() -> None:
    origin = Origin(tool_call=ToolCallId("toolu_1"), thread="t")
    spawn = replace(spawned(), origin=origin)
    first = the_turn(spawn)
    assert (first.parent, first.origin) == (None, origin)
    lost = the_turn(spawn, said("", "c1"), intended("c1"), returned("c1"))
    assert (lost.parent, lost.origin) == (None, origin)
    found = replace(said("", "c1"), origin_run=RunId("boss"))
    second = the_turn(spawn, found, intended("c1"), returned("c1"))
    assert (second.parent, second.origin) == ("boss", None)
    later = replace(said("", "c2"), origin_run=RunId("another"))
    state = after(spawn, found, intended("c1"), returned("c1"), later).state
    assert state.runs[RunId("r")].origin_run == "boss", "the first answer stands"


def test_a_child_of_a_run_has_that_as_its_parent_whatever_its_origin() -> None:
    child = replace(spawned("kid", parent="r"), origin=Origin(thread="t"))
    turn = the_turn(spawned(), child)
    assert (turn.parent, turn.origin) == ("r", None)
