"""What follows from an event in the life of a run: the next turn, the next calls, or the end.

A turn with tool calls leads to the calls, and when all are settled to the next turn; a turn without ends the run.
Once the tool budget is spent no tools are offered and whatever the model says is the result, so a run takes at most
budget + 1 turns. It does not know what the tools are, nor whether arguments fit them: the shell tells the verdict.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from luftpause.core.model.ids import Instant, RunId, ToolCallId
from luftpause.core.runs.actions import Action, CallTool, CancelWork, CheckCall, EndRun, ReportEnd, TakeTurn
from luftpause.core.runs.events import (
    Ending,
    Event,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunRecovered,
    RunSpawned,
    ToolCallIntended,
    ToolCallRejected,
    ToolReturned,
    TurnTaken,
)
from luftpause.core.runs.messages import Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from luftpause.core.runs.state import (
    Call,
    CallingTools,
    Cancelled,
    Concluding,
    Failed,
    Finished,
    Generating,
    OpenCall,
    Phase,
    ProposedCall,
    Run,
    SettledCall,
    State,
    Totals,
)
from luftpause.core.runs.tree import adopt, ancestors, credit, descendants, tree_of

BUDGET_SPENT_TEXT = "Error: not called, the tool budget is spent. Answer with what you have."
OUTCOME_UNKNOWN_TEXT = (
    "Error: the runtime was restarted during this call. Whether it took effect is unknown; it was not made again."
)
ANCESTOR_CANCELLED = "a run above it was cancelled"

Verdict: TypeAlias = ToolCallIntended | ToolCallRejected | ToolReturned


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The state after an event, and what to do about it, in order."""

    state: State
    actions: tuple[Action, ...] = ()


def decide(state: State, event: Event, now: Instant) -> Decision:
    """Return what follows from an event; `now` only dates the phase that begins."""
    if isinstance(event, RunSpawned):
        return _spawned(state, event, now)
    run = state.runs.get(event.run)
    if run is None or run.is_over:
        return Decision(state=state)
    match event:
        case TurnTaken():
            return _turn_taken(state, run, event, now)
        case ToolCallIntended() | ToolCallRejected() | ToolReturned():
            return _call_moved(state, run, event, now)
        case RunRecovered():
            return _recovered(state, run, now)
        case RunFinished() | RunFailed() | RunCancelled():
            return _ended(state, run, event)
        case _:
            assert_never(event)


def cancellations(state: State, run: RunId, why: str) -> tuple[RunCancelled, ...]:
    """Return what ends a run and all that runs below it, also below runs that are over themselves."""
    family = (state.runs[run], *descendants(state, run))
    return tuple(
        RunCancelled(run=each.spawn.run, why=why if each.spawn.run == run else ANCESTOR_CANCELLED)
        for each in family
        if not each.is_over
    )


def _spawned(state: State, event: RunSpawned, now: Instant) -> Decision:
    if event.run in state.runs:
        return Decision(state=state)
    opening: tuple[Message, ...] = (UserMessage(text=event.task),)
    if event.system is not None:
        opening = (SystemMessage(text=event.system), *opening)
    run = Run(spawn=event, tree=tree_of(state, event), phase=Generating(since=now), messages=opening)
    state = adopt(state, run)
    return Decision(state=state, actions=_go_on(state, run))


def _turn_taken(state: State, run: Run, event: TurnTaken, now: Instant) -> Decision:
    if not isinstance(run.phase, Generating):
        return Decision(state=state)
    room = run.spawn.max_tool_calls - run.own.tool_calls
    asked = event.message.tool_calls
    counted = asked[: max(room, 0)]
    usage = event.usage
    state = credit(
        state,
        event.run,
        Totals(
            turns=1,
            tool_calls=len(counted),
            prompt_tokens=0 if usage is None else usage.prompt_tokens,
            completion_tokens=0 if usage is None else usage.completion_tokens,
            turn_ms=event.took_ms,
        ),
    )
    run = replace(state.runs[event.run], messages=(*run.messages, event.message))
    if not counted:
        run = replace(run, phase=Concluding(since=now, result=event.message.text))
    else:
        calls: tuple[Call, ...] = tuple(ProposedCall(asked=call) for call in counted)
        refused = tuple(SettledCall(asked=call, text=BUDGET_SPENT_TEXT) for call in asked[len(counted) :])
        run = replace(run, phase=CallingTools(since=now, calls=calls + refused))
    return _with(state, run)


def _call_moved(state: State, run: Run, event: Verdict, now: Instant) -> Decision:
    phase = run.phase
    if not isinstance(phase, CallingTools):
        return Decision(state=state)
    place = _place(phase, event.call)
    if place is None:
        return Decision(state=state)
    call = phase.calls[place]
    match event:
        case ToolCallIntended():
            if not isinstance(call, ProposedCall):
                return Decision(state=state)
            opened = OpenCall(asked=call.asked, repeatable=event.repeatable)
            run = _with_call(run, phase, place, opened)
            return Decision(state=_put(state, run), actions=(_order(run, opened.asked),))
        case ToolCallRejected():
            work = Totals(failed_tool_calls=1)
        case ToolReturned():
            work = Totals(failed_tool_calls=int(event.failed), tool_ms=event.took_ms)
        case _:
            assert_never(event)
    if isinstance(call, SettledCall):
        return Decision(state=state)
    state = credit(state, event.run, work)
    settled = SettledCall(asked=call.asked, text=event.text)
    run = _with_call(state.runs[event.run], phase, place, settled)
    return _when_all_settled(state, run, now)


def _recovered(state: State, run: Run, now: Instant) -> Decision:
    """Nothing is under way any more: begin again what may be, and tell the model of what may not."""
    if isinstance(run.phase, CallingTools):
        lost = [call for call in run.phase.calls if isinstance(call, OpenCall) and not call.repeatable]
        calls = tuple(
            SettledCall(asked=call.asked, text=OUTCOME_UNKNOWN_TEXT) if call in lost else call
            for call in run.phase.calls
        )
        state = credit(state, run.spawn.run, Totals(failed_tool_calls=len(lost)))
        run = replace(state.runs[run.spawn.run], phase=replace(run.phase, calls=calls))
        if any(not isinstance(call, SettledCall) for call in calls):
            return _with(state, run)
        return _when_all_settled(state, run, now)
    return _with(state, run)


def _ended(state: State, run: Run, event: Ending) -> Decision:
    over = replace(run, phase=_last_phase(event), messages=())
    state = replace(_put(state, over), running=state.running - 1)
    actions: list[Action] = [CancelWork(run=event.run), ReportEnd(run=event.run)]
    if isinstance(event, RunCancelled):
        actions.extend(EndRun(ending=ending) for ending in cancellations(state, event.run, ""))
    return Decision(state=state, actions=tuple(actions))


def _last_phase(event: Ending) -> Phase:
    match event:
        case RunFinished():
            return Finished(result=event.result)
        case RunFailed():
            return Failed(error=event.error)
        case RunCancelled():
            return Cancelled(why=event.why)
        case _:
            assert_never(event)


def _when_all_settled(state: State, run: Run, now: Instant) -> Decision:
    """Go on to the next turn once every call has its answer; until then there is nothing new to order."""
    phase = run.phase
    if not isinstance(phase, CallingTools):
        return Decision(state=_put(state, run))
    answers = tuple(
        ToolMessage(call=call.asked.call, text=call.text) for call in phase.calls if isinstance(call, SettledCall)
    )
    if len(answers) < len(phase.calls):
        return Decision(state=_put(state, run))
    run = replace(run, phase=Generating(since=now), messages=(*run.messages, *answers))
    return _with(state, run)


def _with(state: State, run: Run) -> Decision:
    return Decision(state=_put(state, run), actions=_go_on(state, run))


def _go_on(state: State, run: Run) -> tuple[Action, ...]:
    """Return everything that has to be under way in the run's phase."""
    spawn = run.spawn
    if any(isinstance(above.phase, Cancelled) for above in ancestors(state, spawn.run)):
        return (EndRun(ending=RunCancelled(run=spawn.run, why=ANCESTOR_CANCELLED)),)
    match run.phase:
        case Generating():
            return (_next_turn(run),)
        case CallingTools():
            return tuple(_next_step(run, call) for call in run.phase.calls if not isinstance(call, SettledCall))
        case Concluding():
            return (EndRun(ending=RunFinished(run=spawn.run, result=run.phase.result)),)
        case Finished() | Failed() | Cancelled():
            return ()
        case _:
            assert_never(run.phase)


def _next_turn(run: Run) -> TakeTurn:
    spawn = run.spawn
    return TakeTurn(
        run=spawn.run,
        model=spawn.model,
        service_class=spawn.service_class,
        caller=spawn.caller,
        parent=spawn.parent,
        messages=run.messages,
        tools=spawn.tools if run.own.tool_calls < spawn.max_tool_calls else (),
        max_tokens=spawn.max_tokens,
        parallel_tool_calls=spawn.parallel_tool_calls,
    )


def _next_step(run: Run, call: ProposedCall | OpenCall) -> CheckCall | CallTool:
    if isinstance(call, OpenCall):
        return _order(run, call.asked)
    return CheckCall(run=run.spawn.run, call=call.asked.call, tool=call.asked.tool, arguments=call.asked.arguments)


def _order(run: Run, asked: ToolCall) -> CallTool:
    return CallTool(
        run=run.spawn.run,
        call=asked.call,
        tool=asked.tool,
        arguments=asked.arguments,
        key=f"{run.spawn.run}/{run.own.turns}/{asked.call}",
    )


def _place(phase: CallingTools, call: ToolCallId) -> int | None:
    return next((place for place, known in enumerate(phase.calls) if known.asked.call == call), None)


def _with_call(run: Run, phase: CallingTools, place: int, call: Call) -> Run:
    calls = (*phase.calls[:place], call, *phase.calls[place + 1 :])
    return replace(run, phase=replace(phase, calls=calls))


def _put(state: State, run: Run) -> State:
    run_id: RunId = run.spawn.run
    return replace(state, runs=state.runs.set(run_id, run))
