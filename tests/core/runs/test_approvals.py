from dataclasses import replace

import pytest

from core.runs.run_builders import (
    NOW,
    after,
    asked,
    decided,
    history,
    recorded,
    returned,
    said,
    spawned,
    the_turn,
    tool,
)
from luftpause.core.model.ids import RunId, ToolCallId
from luftpause.core.runs.actions import CallTool
from luftpause.core.runs.approvals import DECLINED_TEXT, approval_reason
from luftpause.core.runs.events import ApprovalScope, Limits, RunCancelled, RunRecovered
from luftpause.core.runs.invariants import check
from luftpause.core.runs.messages import ToolMessage
from luftpause.core.runs.replay import replay
from luftpause.core.runs.state import State
from luftpause.core.runs.tools import ToolHints, ToolSpec
from luftpause.core.runs.view import PendingApproval, RunStatus, view

R, KID = RunId("r"), RunId("kid")
WAITING = (spawned(), said("", "c1"), asked("c1"))


def hinted(**hints: bool) -> ToolSpec:
    return replace(tool("look"), hints=ToolHints(**hints))


@pytest.mark.parametrize(
    ("spec", "approve", "is_asked"),
    [
        (hinted(), (), False),
        (hinted(says_destructive=True), (), True),
        (hinted(says_destructive=True, read_only=True), (), False),
        (hinted(read_only=True), ("look",), True),
        (hinted(), ("s__look",), True),
        (hinted(), ("gaze",), False),
    ],
)
def test_somebody_is_asked_when_the_server_says_destructive_or_the_spawn_names_the_tool(
    spec: ToolSpec, approve: tuple[str, ...], is_asked: bool
) -> None:
    state = after(replace(spawned(), approve_tools=approve)).state
    assert (approval_reason(state, state.runs[R], spec) is not None) == is_asked


def test_a_call_that_waits_is_shown_and_nothing_is_ordered_for_it() -> None:
    decision = after(*WAITING)
    shown = view(decision.state, R, NOW)
    assert decision.actions == ()
    assert shown.status is RunStatus.AWAITING_APPROVAL
    assert shown.pending_approvals == (
        PendingApproval(call=ToolCallId("c1"), tool="look", arguments="{}", reason="it asks"),
    )


def test_allowing_is_the_intent_the_call_goes_at_once() -> None:
    decision = after(*WAITING, decided("c1"))
    assert decision.actions == (CallTool(run=R, call=ToolCallId("c1"), tool="look", arguments="{}", key="r/1/c1"),)
    assert view(decision.state, R, NOW).status is RunStatus.RUNNING


def test_a_declined_call_is_told_to_the_model_and_is_no_tool_time() -> None:
    turn = the_turn(*WAITING, decided("c1", allow=False))
    assert turn.messages[-1] == ToolMessage(call=ToolCallId("c1"), text=DECLINED_TEXT)
    own = after(*WAITING, decided("c1", allow=False)).state.runs[R].own
    assert (own.tool_calls, own.failed_tool_calls, own.tool_ms) == (1, 1, 0)


@pytest.mark.parametrize("first", [True, False])
def test_the_first_decision_counts_and_later_ones_change_nothing(first: bool) -> None:
    state = after(spawned(), said("", "c1", "c2"), asked("c1"), decided("c1", allow=first)).state
    late = after(decided("c1", allow=not first), state=state)
    assert (late.state is state, late.actions) == (True, ())


def test_after_a_restart_what_was_not_answered_is_asked_again_and_what_was_is_not() -> None:
    state = replay([history("r", *WAITING)])
    assert after(RunRecovered(run=R), state=state).actions == ()
    assert view(state, R, NOW).status is RunStatus.AWAITING_APPROVAL
    unsafe = replay([history("r", *WAITING, decided("c1"))])
    assert view(unsafe, R, NOW).pending_approvals == ()
    turn = the_turn(RunRecovered(run=R), state=unsafe)
    assert isinstance(turn.messages[-1], ToolMessage)
    assert "unknown" in turn.messages[-1].text, "whether it was made is not known, so it is not made again"
    safe = (spawned(), said("", "c1"), asked("c1", repeatable=True), decided("c1"))
    assert isinstance(after(RunRecovered(run=R), state=replay([history("r", *safe)])).actions[0], CallTool)


def test_a_call_that_waits_cannot_return() -> None:
    state = after(*WAITING).state
    assert after(returned("c1"), state=state).state is state


def test_an_answer_after_the_end_is_ignored_and_the_tool_never_runs() -> None:
    state = after(*WAITING, RunCancelled(run=R, why="enough")).state
    late = after(decided("c1"), state=state)
    assert (late.state is state, late.actions) == (True, ())


def test_an_answer_while_the_end_is_on_its_way_makes_no_call() -> None:
    family = (spawned("top"), replace(spawned(parent="top"), budget=Limits(seconds=60)), *WAITING[1:])
    cancelled_above = after(*family, RunCancelled(run=RunId("top"), why="enough")).state
    out_of_time = after(*family).state
    for state, now in ((cancelled_above, 0), (out_of_time, 60_000)):
        decision = after(decided("c1"), state=state, now=now)
        assert [type(event) for event in recorded(decision)] == [RunCancelled]
        assert len(decision.actions) == 1


def both_wait() -> State:
    events = (spawned(), spawned("kid", parent="r"), spawned("other"), said("", "c1", "c2"), asked("c1"), asked("c2"))
    more = (said("", "k", run="kid"), asked("k", run="kid"), said("", "o", run="other"), asked("o", run="other"))
    return after(*events, *more).state


@pytest.mark.parametrize(
    ("scope", "released"),
    [
        (ApprovalScope.ONCE, ()),
        (ApprovalScope.RUN, (decided("c2"),)),
        (ApprovalScope.TREE, (decided("c2"), decided("k", run="kid"))),
    ],
)
def test_a_grant_reaches_as_far_as_it_was_given(scope: ApprovalScope, released: tuple[object, ...]) -> None:
    decision = after(decided("c1", scope=scope), state=both_wait())
    check(decision.state)
    assert recorded(decision) == released
    waiting = {run for run in ("r", "kid", "other") if view(decision.state, RunId(run), NOW).pending_approvals}
    freed = {"once": set(), "run": {"r"}, "tree": {"r", "kid"}}[scope.value]
    assert waiting == {"r", "kid", "other"} - freed, "it is shown in the step in which it was decided"
    kid = approval_reason(decision.state, decision.state.runs[KID], hinted(says_destructive=True))
    assert (kid is None) == (scope is ApprovalScope.TREE)


def test_what_a_grant_covers_goes_after_a_restart_too() -> None:
    state = after(decided("c1", scope=ApprovalScope.TREE), state=both_wait()).state
    again = after(RunRecovered(run=KID), state=state)
    assert [event.run for event in recorded(again)] == ["kid"]
    late = after(said("", "l", run="late"), state=after(spawned("late", parent="kid"), state=state).state)
    assert [type(event) for event in recorded(after(asked("l", run="late"), state=late.state))] == [type(decided("l"))]


def test_a_declined_call_grants_nothing_however_far_it_was_to_reach() -> None:
    decision = after(decided("c1", allow=False, scope=ApprovalScope.TREE), state=both_wait())
    assert recorded(decision) == ()
    assert not decision.state.runs[R].grants
    assert not decision.state.trees


def test_a_decision_on_what_was_never_asked_changes_nothing() -> None:
    state = after(spawned(), said("", "c1")).state
    assert after(decided("c1"), state=state).state is state
