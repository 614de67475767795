"""The tool calls of a reply, each from asked for to settled; once all are settled the model has the word again."""

from dataclasses import replace
from typing import Final, TypeAlias

from luftpause.core.model.ids import ActiveMs, ToolCallId
from luftpause.core.runs.actions import Record
from luftpause.core.runs.approvals import DECLINED_TEXT, grant, releases
from luftpause.core.runs.decision import Decision
from luftpause.core.runs.events import ApprovalAsked, ApprovalDecided, ToolCallIntended, ToolCallRejected, ToolReturned
from luftpause.core.runs.go_on import go_on, step
from luftpause.core.runs.messages import ToolMessage
from luftpause.core.runs.speech import generating
from luftpause.core.runs.state import (
    Call,
    CallingTools,
    OpenCall,
    PendingCall,
    ProposedCall,
    Run,
    SettledCall,
    State,
    Totals,
)
from luftpause.core.runs.tree import credit, with_run

OUTCOME_UNKNOWN_TEXT = (
    "Error: the runtime was restarted during this call. Whether it took effect is unknown; it was not made again."
)

FAILED: Final = Totals(failed_tool_calls=1)

CallEvent: TypeAlias = ToolCallIntended | ToolCallRejected | ApprovalAsked | ApprovalDecided | ToolReturned


def call_moved(state: State, run: Run, event: CallEvent, now: ActiveMs) -> Decision:
    """Return what follows from what happened to one call; nothing where the call is not at that point."""
    call = _find(run, event.call)
    match event, call:
        case ToolCallIntended(), ProposedCall():
            return _becomes(state, run, OpenCall(asked=call.asked, repeatable=event.repeatable), now)
        case ApprovalAsked(), ProposedCall():
            pending = PendingCall(
                asked=call.asked, tool=event.tool, reason=event.reason, repeatable=event.repeatable, since=now
            )
            return _becomes(state, run, pending, now)
        case ApprovalDecided(), PendingCall():
            return _decided(state, run, call, event, now)
        case ToolCallRejected(), ProposedCall():
            return _settled(
                state, run, SettledCall(asked=call.asked, text=event.text), Totals(failed_tool_calls=1), now
            )
        case ToolReturned(), OpenCall():
            work = Totals(failed_tool_calls=int(event.failed), tool_ms=event.took_ms)
            return _settled(state, run, SettledCall(asked=call.asked, text=event.text), work, now)
        case _:
            return Decision(state=state)


def calls_lost(state: State, run: Run, phase: CallingTools, now: ActiveMs) -> Decision:
    """Nothing is under way any more: begin again what may be, and tell the model of what may not."""
    lost = [call for call in phase.calls if isinstance(call, OpenCall) and not call.repeatable]
    calls = tuple(
        SettledCall(asked=call.asked, text=OUTCOME_UNKNOWN_TEXT) if call in lost else call for call in phase.calls
    )
    state = credit(state, run.spawn.run, Totals(failed_tool_calls=len(lost)))
    run = replace(state.runs[run.spawn.run], phase=replace(phase, calls=calls))
    if all(isinstance(call, SettledCall) for call in calls):
        return _when_all_settled(state, run, now)
    return Decision(state=with_run(state, run), actions=go_on(with_run(state, run), run, now))


def _decided(state: State, run: Run, call: PendingCall, event: ApprovalDecided, now: ActiveMs) -> Decision:
    if not event.allow:
        return _settled(state, run, SettledCall(asked=call.asked, text=DECLINED_TEXT), FAILED, now)
    state = grant(state, run, call.tool, event.scope)
    begun = _becomes(state, state.runs[event.run], OpenCall(asked=call.asked, repeatable=call.repeatable), now)
    others = tuple(Record(event=other) for other in releases(begun.state, event, call.tool))
    return replace(begun, actions=(*begun.actions, *others))


def _becomes(state: State, run: Run, call: Call, now: ActiveMs) -> Decision:
    run = _with_call(run, call)
    state = with_run(state, run)
    return Decision(state=state, actions=step(state, run, call, now))


def _settled(state: State, run: Run, call: SettledCall, work: Totals, now: ActiveMs) -> Decision:
    state = credit(state, run.spawn.run, work)
    return _when_all_settled(state, _with_call(state.runs[run.spawn.run], call), now)


def _when_all_settled(state: State, run: Run, now: ActiveMs) -> Decision:
    """Go on to the next turn once every call has its answer; until then there is nothing new to order."""
    calls = run.phase.calls if isinstance(run.phase, CallingTools) else ()
    answers = tuple(
        ToolMessage(call=call.asked.call, text=call.text) for call in calls if isinstance(call, SettledCall)
    )
    if len(answers) < len(calls):
        return Decision(state=with_run(state, run))
    run = generating(run, *answers, now=now)
    state = with_run(state, run)
    return Decision(state=state, actions=go_on(state, run, now))


def _find(run: Run, call: ToolCallId) -> Call | None:
    if not isinstance(run.phase, CallingTools):
        return None
    return next((known for known in run.phase.calls if known.asked.call == call), None)


def _with_call(run: Run, call: Call) -> Run:
    if not isinstance(run.phase, CallingTools):
        return run
    calls = tuple(call if known.asked.call == call.asked.call else known for known in run.phase.calls)
    return replace(run, phase=replace(run.phase, calls=calls))
