"""What follows from an event in the life of a run: the next turn, the next calls, or the end.

A turn with tool calls leads to the calls, and when all are settled to the next turn; a turn without ends the run.
Once the tool calls are spent no tools are offered and whatever the model says is the answer, so a run takes at most
one turn more than it has calls, another one to mend its answer, and as many again for each message that makes it go on.
It does not know what the tools are, nor whether arguments or answers fit: the shell tells the verdict.

How a run stands, apart from what it and all below it used, follows from its own events; what it orders, from all.
"""

from dataclasses import replace
from typing import TypeAlias, assert_never

from luftpause.core.model.ids import ActiveMs
from luftpause.core.runs.actions import Action, CancelWork, Record, ReportEnd
from luftpause.core.runs.calls import CallEvent, call_moved, calls_lost
from luftpause.core.runs.condensing import brief
from luftpause.core.runs.decision import Decision
from luftpause.core.runs.events import (
    AnswerRejected,
    ApprovalAsked,
    ApprovalDecided,
    Ending,
    Event,
    LandingBegun,
    MessageSent,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunRecovered,
    RunsAwaited,
    RunSpawned,
    ToolCallIntended,
    ToolCallRejected,
    ToolReturned,
    TurnFailed,
    TurnTaken,
)
from luftpause.core.runs.go_on import cancellations, go_on
from luftpause.core.runs.messages import Message, SystemMessage, UserMessage
from luftpause.core.runs.speech import answered, generating
from luftpause.core.runs.state import (
    Call,
    CallingTools,
    Cancelled,
    Concluding,
    Failed,
    Failing,
    Finished,
    Generating,
    Phase,
    ProposedCall,
    Run,
    SettledCall,
    State,
    Totals,
    WaitingForRuns,
)
from luftpause.core.runs.tree import adopt, closed, credit, no_longer_waiting, opened, tree_of, with_run
from luftpause.core.runs.waiting import released_by

BUDGET_SPENT_TEXT = "Error: not called, the tool budget is spent. Answer with what you have."
LANDING_TEXT = "The budget for this task is nearly spent and no tools are left. Answer now with what you have."


def decide(state: State, event: Event, now: ActiveMs) -> Decision:
    """Return what follows from an event. `now` is its tree's time, the same in life and in replay."""
    if isinstance(event, RunSpawned):
        return _spawned(state, event, now)
    run = state.runs.get(event.run)
    if run is None:
        return Decision(state=state)
    if isinstance(event, MessageSent):
        return _message_sent(state, run, event, now)
    return Decision(state=state) if run.is_over else _lives(state, run, event, now)


_Turn: TypeAlias = TurnTaken | TurnFailed | LandingBegun | AnswerRejected
_Other: TypeAlias = CallEvent | RunsAwaited | RunRecovered | Ending


def _lives(state: State, run: Run, event: _Turn | _Other, now: ActiveMs) -> Decision:
    match event:
        case TurnTaken() | TurnFailed() | LandingBegun() | AnswerRejected():
            decision = _model_moved(state, run, event, now)
        case ToolCallIntended() | ToolCallRejected() | ApprovalAsked() | ApprovalDecided() | ToolReturned():
            decision = call_moved(state, run, event, now)
        case RunsAwaited():
            decision = _runs_awaited(state, run, event, now)
        case RunRecovered():
            decision = _recovered(state, run, now)
        case RunFinished() | RunFailed() | RunCancelled():
            decision = _ended(state, run, event, now)
        case _:
            assert_never(event)
    return decision


def _model_moved(state: State, run: Run, event: _Turn, now: ActiveMs) -> Decision:
    match event:
        case TurnTaken():
            return _turn_taken(state, run, event, now)
        case TurnFailed():
            return _turn_failed(state, run, event, now)
        case LandingBegun():
            return _landing_begun(state, run, now)
        case AnswerRejected():
            return _answer_rejected(state, run, event, now)
        case _:
            assert_never(event)


def is_stale(state: State, event: Event) -> bool:
    """Whether an end was ordered before a message came that the run has not answered: it must not be recorded."""
    run = state.runs.get(event.run)
    if run is None or not isinstance(event, RunFinished):
        return False
    return not isinstance(run.phase, Concluding) or run.phase.result != event.result


def without_conversation(state: State, run: Run) -> State:
    """Drop what was said in a run that is over, and what it was given for that; its journal has it."""
    if not run.is_over or not run.messages:
        return state
    return with_run(state, replace(run, spawn=brief(run.spawn), messages=(), unheard=()))


def _spawned(state: State, event: RunSpawned, now: ActiveMs) -> Decision:
    if event.run in state.runs:
        return Decision(state=state)
    opening: tuple[Message, ...] = (UserMessage(text=event.task),)
    if event.system is not None:
        opening = (SystemMessage(text=event.system), *opening)
    phase = WaitingForRuns(since=now) if event.after else Generating(since=now)
    run = Run(spawn=event, tree=tree_of(state, event), phase=phase, messages=opening, began=now)
    state = adopt(state, run)
    return _put(state, state.runs[event.run], now)


def _runs_awaited(state: State, run: Run, event: RunsAwaited, now: ActiveMs) -> Decision:
    if not isinstance(run.phase, WaitingForRuns):
        return Decision(state=state)
    begun = generating(run, UserMessage(text=event.text), now=now)
    return _put(no_longer_waiting(state, run), begun, now)


def _turn_taken(state: State, run: Run, event: TurnTaken, now: ActiveMs) -> Decision:
    if not isinstance(run.phase, Generating):
        return Decision(state=state)
    asked = event.message.tool_calls
    room = run.spawn.max_tool_calls - (run.own.tool_calls - run.calls_before)
    counted = () if run.landing or run.repaired else asked[: max(room, 0)]
    usage = event.usage
    work = Totals(
        turns=1,
        tool_calls=len(counted),
        prompt_tokens=0 if usage is None else usage.prompt_tokens,
        completion_tokens=0 if usage is None else usage.completion_tokens,
        turn_ms=event.took_ms,
    )
    state = credit(state, event.run, work)
    run = state.runs[event.run]
    if run.origin_run is None and event.origin_run is not None:
        run = replace(run, origin_run=event.origin_run)
    if counted:
        calls: tuple[Call, ...] = tuple(ProposedCall(asked=call) for call in counted)
        refused = tuple(SettledCall(asked=call, text=BUDGET_SPENT_TEXT) for call in asked[len(counted) :])
        phase = CallingTools(since=now, calls=calls + refused)
        run = replace(run, phase=phase, messages=(*run.messages, event.message))
    else:
        # Calls that nobody answers would make the conversation one that engines refuse.
        answer = replace(event.message, tool_calls=())
        concluding = replace(run, phase=Concluding(since=now, result=answer.text), messages=(*run.messages, answer))
        run = answered(concluding, now=now) if run.unheard else concluding
    return _put(state, run, now)


def _turn_failed(state: State, run: Run, event: TurnFailed, now: ActiveMs) -> Decision:
    if not isinstance(run.phase, Generating):
        return Decision(state=state)
    if run.models_failed < len(run.spawn.fallback_models):
        return _put(state, generating(replace(run, models_failed=run.models_failed + 1), now=now), now)
    return _put(state, replace(run, phase=Failing(since=now, error=event.error)), now)


def _landing_begun(state: State, run: Run, now: ActiveMs) -> Decision:
    if not isinstance(run.phase, Generating) or run.landing:
        return Decision(state=state)
    told = generating(replace(run, landing=True), now=now)
    return _put(state, generating(told, UserMessage(text=LANDING_TEXT), now=now), now)


def _answer_rejected(state: State, run: Run, event: AnswerRejected, now: ActiveMs) -> Decision:
    if not isinstance(run.phase, Concluding):
        return Decision(state=state)
    told = f"The answer does not fit: {event.complaint}"
    if not run.repaired:
        ask = UserMessage(text=f"{told}. Answer again, with nothing but JSON of the shape that was asked for.")
        return _put(state, generating(replace(run, repaired=True), ask, now=now), now)
    error = f"{told}. It was asked for again once; the last answer: {run.phase.result}"
    return _put(state, replace(run, phase=Failing(since=now, error=error)), now)


def _message_sent(state: State, run: Run, event: MessageSent, now: ActiveMs) -> Decision:
    match run.phase:
        case WaitingForRuns() | Generating() | CallingTools():
            waiting = replace(run, unheard=(*run.unheard, event.text))
            return Decision(state=with_run(state, waiting))
        case Concluding():
            return _put(state, answered(run, UserMessage(text=event.text), now=now), now)
        case Finished():
            state = opened(state, event.run)
            return _put(state, answered(state.runs[event.run], UserMessage(text=event.text), now=now), now)
        case Failing() | Failed() | Cancelled():
            return Decision(state=state)
        case _:
            assert_never(run.phase)


def _recovered(state: State, run: Run, now: ActiveMs) -> Decision:
    """Nothing is under way any more."""
    if isinstance(run.phase, CallingTools):
        return calls_lost(state, run, run.phase, now)
    return _put(state, generating(run, now=now) if isinstance(run.phase, Generating) else run, now)


def _ended(state: State, run: Run, event: Ending, now: ActiveMs) -> Decision:
    if isinstance(run.phase, WaitingForRuns):
        state = no_longer_waiting(state, run)
    state = closed(with_run(state, replace(run, phase=_last_phase(event))), event.run, now)
    actions: list[Action] = [CancelWork(run=event.run), ReportEnd(run=event.run, principal=run.spawn.principal)]
    if isinstance(event, RunCancelled):
        below = cancellations(state, event.run, event.why, event.exceeded)
        actions.extend(Record(event=ending) for ending in below)
    actions.extend(Record(event=begin) for begin in released_by(state, event.run))
    return Decision(state=state, actions=tuple(actions))


def _last_phase(event: Ending) -> Phase:
    match event:
        case RunFinished():
            return Finished(result=event.result, structured=event.structured)
        case RunFailed():
            return Failed(error=event.error)
        case RunCancelled():
            return Cancelled(why=event.why, exceeded=event.exceeded)
        case _:
            assert_never(event)


def _put(state: State, run: Run, now: ActiveMs) -> Decision:
    state = with_run(state, run)
    return Decision(state=state, actions=go_on(state, run, now))
