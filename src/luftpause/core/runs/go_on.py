"""What has to be under way in each phase of a run, and what ends it first: a run above that was ended, or a budget.

Every step of every run is ordered here, so nothing goes on that a budget or a cancellation forbids.
"""

from typing import assert_never

from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.actions import Action, CallTool, CheckAnswer, CheckCall, Record, TakeTurn
from luftpause.core.runs.approvals import is_granted, released
from luftpause.core.runs.budgets import exceeded, nearly_spent, overdue, tokens_left, without_tokens
from luftpause.core.runs.call_keys import key_of
from luftpause.core.runs.events import Exceeded, LandingBegun, RunCancelled, RunFailed, RunFinished
from luftpause.core.runs.state import (
    Call,
    CallingTools,
    Cancelled,
    Concluding,
    Failed,
    Failing,
    Finished,
    Generating,
    OpenCall,
    PendingCall,
    ProposedCall,
    Run,
    SettledCall,
    State,
    WaitingForRuns,
)
from luftpause.core.runs.tools import ToolSpec
from luftpause.core.runs.tree import ancestors, descendants
from luftpause.core.runs.waiting import all_over, awaited

ANCESTOR_CANCELLED = "cancelled: a run above it was cancelled"
GRANTED = "an earlier decision"


def go_on(state: State, run: Run, now: ActiveMs) -> tuple[Action, ...]:
    """Return everything that has to be under way, or what ends the run instead."""
    ends = ended_by_others(state, run, now)
    others = tuple(Record(event=end) for end in ends)
    if _has_landed(run) and all(end.run != run.spawn.run for end in ends):
        # What its last turn gave is kept, though that turn passed the limit.
        return (*others, *_next_steps(state, run, now))
    return others or _next_steps(state, run, now)


def step(state: State, run: Run, call: Call, now: ActiveMs) -> tuple[Action, ...]:
    """Return what has to be under way for one call, or what ends the run instead."""
    ends = ended_by_others(state, run, now)
    return tuple(Record(event=end) for end in ends) or _call_step(state, run, call)


def ended_by_others(state: State, run: Run, now: ActiveMs) -> tuple[RunCancelled, ...]:
    """Return what has to end because a run above was cancelled or a budget is spent, none for most runs."""
    for above in ancestors(state, run.spawn.run):
        if isinstance(above.phase, Cancelled):
            lets_go = above.phase.exceeded is not None and _has_landed(run)
            return () if lets_go else (_below(above.phase, run.spawn.run),)
    found = exceeded(state, run, now)
    if found is None and isinstance(run.phase, Generating):
        found = without_tokens(state, run)
    return () if found is None else cancellations(state, found.run, found.text, found)


def barred(state: State, run: Run, now: ActiveMs) -> str:
    """Return why nothing new may begin in a run or below it, for people; empty while it may."""
    for each in (run, *ancestors(state, run.spawn.run)):
        if isinstance(each.phase, Cancelled):
            return f"{each.spawn.run} was cancelled" if each.phase.exceeded is None else each.phase.why
    spent = exceeded(state, run, now) or without_tokens(state, run)
    return "" if spent is None else spent.text


def cancellations(state: State, run: RunId, why: str, cause: Exceeded | None = None) -> tuple[RunCancelled, ...]:
    """Return what ends a run and all that runs below it, also below runs that are over themselves.

    With a budget as the cause, runs that have given their last answer are let go with it.
    """
    top = Cancelled(why=why, exceeded=cause)
    family = (state.runs[run], *descendants(state, run))
    return tuple(
        RunCancelled(run=run, why=why, exceeded=cause) if each.spawn.run == run else _below(top, each.spawn.run)
        for each in family
        if not each.is_over and (cause is None or not _has_landed(each))
    )


def overdue_endings(state: State, tree: RunId, now: ActiveMs) -> tuple[RunCancelled, ...]:
    """Return what ends because time has passed; for the timer, since nothing else happens in an idle subtree."""
    passed = overdue(state, tree, now)
    return tuple(end for each in passed for end in cancellations(state, each.run, each.text, each))


def offered_tools(run: Run) -> tuple[ToolSpec, ...]:
    """Return the tools that the run's next turn offers."""
    spent = run.own.tool_calls - run.calls_before >= run.spawn.max_tool_calls
    return () if spent or run.landing or run.repaired else run.spawn.tools


def _has_landed(run: Run) -> bool:
    return run.landing and isinstance(run.phase, Concluding)


def _below(top: Cancelled, run: RunId) -> RunCancelled:
    why = ANCESTOR_CANCELLED if top.exceeded is None else top.why
    return RunCancelled(run=run, why=why, exceeded=top.exceeded)


def _next_steps(state: State, run: Run, now: ActiveMs) -> tuple[Action, ...]:
    steps: tuple[Action, ...] = ()
    match run.phase:
        case WaitingForRuns():
            steps = (Record(event=awaited(state, run)),) if all_over(state, run) else ()
        case Generating():
            steps = (_next_word(state, run, now),)
        case CallingTools():
            steps = tuple(action for call in run.phase.calls for action in _call_step(state, run, call))
        case Concluding():
            steps = (_conclusion(run, run.phase.result),)
        case Failing():
            steps = (Record(event=RunFailed(run=run.spawn.run, error=run.phase.error)),)
        case Finished() | Failed() | Cancelled():
            steps = ()
        case _:
            assert_never(run.phase)
    return steps


def _conclusion(run: Run, result: str) -> CheckAnswer | Record:
    schema = run.spawn.output_schema
    if schema is None:
        return Record(event=RunFinished(run=run.spawn.run, result=result))
    return CheckAnswer(run=run.spawn.run, text=result, schema=schema)


def _next_word(state: State, run: Run, now: ActiveMs) -> TakeTurn | Record:
    """The next turn, unless it should be the last: then the model is told so first."""
    if not run.landing and nearly_spent(state, run, now, calls_matter=bool(offered_tools(run))):
        return Record(event=LandingBegun(run=run.spawn.run))
    return _next_turn(state, run)


def _next_turn(state: State, run: Run) -> TakeTurn:
    spawn, left, tools = run.spawn, tokens_left(state, run), offered_tools(run)
    wanted = spawn.max_tokens or left or 0
    parent = spawn.parent or run.origin_run
    return TakeTurn(
        run=spawn.run,
        model=run.model,
        service_class=spawn.service_class,
        caller=spawn.caller,
        parent=parent,
        messages=run.messages,
        tools=tools,
        max_tokens=wanted if left is None else min(wanted, left),
        parallel_tool_calls=spawn.parallel_tool_calls,
        answer_schema=None if tools else spawn.output_schema,
        origin=spawn.origin if parent is None else None,
    )


def _call_step(state: State, run: Run, call: Call) -> tuple[Action, ...]:
    name, asked = run.spawn.run, call.asked
    match call:
        case ProposedCall():
            check = CheckCall(run=name, call=asked.call, tool=asked.tool, arguments=asked.arguments, cut=asked.cut)
            return (check,)
        case PendingCall():
            granted = is_granted(state, run, call.tool)
            return (Record(event=released(name, call, GRANTED)),) if granted else ()
        case OpenCall():
            key = key_of(name, run.own.turns, asked.call)
            return (CallTool(run=name, call=asked.call, tool=asked.tool, arguments=asked.arguments, key=key),)
        case SettledCall():
            return ()
        case _:
            assert_never(call)
