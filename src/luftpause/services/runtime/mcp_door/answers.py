"""What the tools return, as values of the shapes in `run_schemas`."""

from collections.abc import Mapping, Sequence

import msgspec
from mcp_types import CallToolResult, TextContent

from luftpause.core.runs.budgets import Used
from luftpause.core.runs.events import Limits
from luftpause.core.runs.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from luftpause.core.runs.tools import ToolSpec
from luftpause.core.runs.view import BudgetView, PendingApproval, RunStatus, RunView
from luftpause.ports.decisions import Decision
from luftpause.services.runtime.orders import Transcript

Answer = dict[str, object]


def result(answer: Answer, *, is_error: bool = False) -> CallToolResult:
    """Return a tool's result: the answer as structured content, and as text for clients that read only that."""
    text = msgspec.json.encode(answer).decode()
    return CallToolResult(content=[TextContent(text=text)], structured_content=answer, is_error=is_error)


def refusal(text: str) -> CallToolResult:
    """Return the result of a call that did nothing."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def run_result(view: RunView, note: str = "") -> CallToolResult:
    """Return the result of `run`: an error where the sub-agent gave no answer, which still tells how it stands."""
    return result(noted(run(view), note), is_error=view.status in (RunStatus.FAILED, RunStatus.CANCELLED))


def noted(answer: Answer, note: str) -> Answer:
    """Return an answer with what there is to know of where its run stands, if there is anything."""
    return {**answer, "note": note} if note else answer


def run(view: RunView) -> Answer:
    """Return one run."""
    return {
        "handle": view.run,
        "status": view.status.value,
        "result": view.result,
        "structured": view.structured,
        "error": view.error,
        "parent": view.parent,
        "children": list(view.children),
        "origin": _origin(view),
        "toolCalls": view.own.tool_calls,
        "failedToolCalls": view.own.failed_tool_calls,
        "pendingApproval": _pending(view.pending_approvals),
        "budget": None if view.budget is None else budget(view.budget),
    }


def _origin(view: RunView) -> Answer | None:
    origin = view.spawn.origin
    if origin is None:
        return None
    return {"door": "llm", "run": view.origin_run, "toolCall": origin.tool_call, "thread": origin.thread or None}


def runs(views: Sequence[RunView]) -> Answer:
    """Return several runs."""
    return {"runs": [run(view) for view in views]}


def budget(view: BudgetView) -> Answer:
    """Return a budget: what was set, what is used of it, and which limit was passed."""
    return {"limits": _limits(view.limits), "used": _used(view.used), "exceeded": view.exceeded}


def tool(spec: ToolSpec) -> Answer:
    """Return a tool that sub-agents can be given."""
    return {
        "name": spec.name,
        "server": spec.server,
        "description": spec.description,
        "inputSchema": dict(spec.schema),
        "readOnly": spec.hints.read_only,
        "destructive": spec.hints.destructive and not spec.hints.read_only,
        "idempotent": spec.hints.idempotent,
    }


def decision(decided: Decision) -> Answer:
    """Return what was decided."""
    return {
        "label": decided.label,
        "probabilities": dict(decided.probabilities),
        "unscored": list(decided.unscored),
        "model": decided.model,
    }


def transcript(handle: str, part: Transcript) -> Answer:
    """Return a part of a conversation."""
    messages = [{"place": part.first + place, **_message(each)} for place, each in enumerate(part.messages)]
    return {"handle": handle, "messages": messages, "total": part.total}


def _message(message: Message) -> Answer:
    match message:
        case SystemMessage():
            return {"role": "system", "text": message.text}
        case UserMessage():
            return {"role": "user", "text": message.text}
        case ToolMessage():
            return {"role": "tool", "text": message.text, "call": message.call}
        case AssistantMessage():
            calls = [{"call": call.call, "tool": call.tool, "arguments": call.arguments} for call in message.tool_calls]
            said: Answer = {"role": "assistant", "text": message.text}
            return {**said, "toolCalls": calls} if calls else said


def _pending(pending: Sequence[PendingApproval]) -> Answer | None:
    if not pending:
        return None
    first = pending[0]
    return {
        "call": first.call,
        "tool": first.tool,
        "arguments": read_arguments(first.arguments),
        "reason": first.reason,
    }


def read_arguments(written: str) -> object:
    """Return a call's arguments as the value that the model wrote, or as its text where that is no JSON."""
    try:
        return msgspec.json.decode(written)
    except (msgspec.DecodeError, RecursionError):
        return written


def _limits(limits: Limits) -> Mapping[str, int]:
    named = {"tokens": limits.tokens, "toolCalls": limits.tool_calls, "seconds": limits.seconds}
    return {name: limit for name, limit in named.items() if limit is not None}


def _used(used: Used) -> Mapping[str, int]:
    return {"tokens": used.tokens, "toolCalls": used.tool_calls, "seconds": used.seconds}
