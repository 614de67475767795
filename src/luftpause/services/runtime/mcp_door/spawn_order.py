"""From what a client asks for to the order that the runtime takes."""

from collections.abc import Mapping
from typing import Final

import msgspec

from luftpause.core.model.ids import ModelName, RunId, ToolCallId
from luftpause.core.runs.call_keys import run_in
from luftpause.core.runs.events import Limits, Origin
from luftpause.ports.tools import KEY_FIELD
from luftpause.services.runtime.identity import caller_of
from luftpause.services.runtime.mcp_door.arguments import SpawnArguments
from luftpause.services.runtime.mcp_door.calls import ToolCall
from luftpause.services.runtime.orders import RuntimeSettings, SpawnOrder, SpawnRefusedError

CLAUDE_TOOL_USE_META: Final = "claudecode/toolUseId"
CODEX_CALL_META: Final = "callId"
CODEX_THREAD_META: Final = "threadId"
TRACEPARENT: Final = "traceparent"
NAME_CHARS_MAX: Final = 256
"""Longest name of a tool call or a thread, and longest trace context, that is taken over from a client."""


def order_of(call: ToolCall, settings: RuntimeSettings) -> SpawnOrder:
    """Return what a call of `spawn` or `run` orders.

    Raises:
        SpawnRefusedError: its principal may not have that.
        msgspec.ValidationError: arguments that do not fit.
    """
    # Not strictly: the schema was checked, and to JSON 2.0 is an integer too.
    asked = msgspec.convert(dict(call.arguments), SpawnArguments, strict=False)
    service_class = asked.service_class or call.principal.usual_class
    refused = call.principal.refusal_of(service_class)
    if refused:
        raise SpawnRefusedError(refused)
    headers, meta = headers_of(call), meta_of(call)
    models = [ModelName(model) for model in (asked.model, *asked.models) if model is not None]
    return SpawnOrder(
        task=asked.task,
        principal=call.principal.name,
        caller=caller_of(headers, meta, call.principal.name, max_bytes=settings.caller_bytes),
        model=models[0] if models else None,
        fallback_models=tuple(models[1:]),
        service_class=service_class,
        system=asked.system,
        tools=asked.tools,
        max_tool_calls=settings.max_tool_calls if asked.max_tool_calls is None else asked.max_tool_calls,
        max_tokens=settings.max_tokens if asked.max_tokens is None else asked.max_tokens,
        parallel_tool_calls=asked.parallel_tool_calls,
        parent=None if asked.parent is None else RunId(asked.parent),
        budget=_budget(asked),
        approve_tools=asked.approve_tools,
        after=asked.after,
        output_schema=asked.output_schema,
        idempotency_key=asked.idempotency_key,
        origin=origin_of(meta),
        spawner=spawner_of(meta),
        traceparent=traceparent_of(call),
    )


def traceparent_of(call: ToolCall) -> str:
    """Return where a client says that its call stands in a trace, empty where it does not; it may be nonsense."""
    return _named(meta_of(call), TRACEPARENT) or headers_of(call).get(TRACEPARENT, "")[:NAME_CHARS_MAX]


def headers_of(call: ToolCall) -> Mapping[str, str]:
    """Return the headers of the request that a call came with."""
    return {} if call.context.request is None else call.context.request.headers


def meta_of(call: ToolCall) -> Mapping[str, object]:
    """Return what a client says about its call beside the arguments."""
    return dict(call.context.meta or {})


def origin_of(meta: Mapping[str, object]) -> Origin | None:
    """Return which tool call of which conversation at the LLM door made this MCP call, as far as the harness says.

    Claude Code names the tool call, Codex names both.
    """
    tool_call = _named(meta, CLAUDE_TOOL_USE_META) or _named(meta, CODEX_CALL_META)
    thread = _named(meta, CODEX_THREAD_META)
    if not tool_call and not thread:
        return None
    return Origin(tool_call=ToolCallId(tool_call) if tool_call else None, thread=thread)


def spawner_of(meta: Mapping[str, object]) -> RunId | None:
    """Return the run whose tool call this is: a sub-agent may have this very door among its tool servers."""
    key = meta.get(KEY_FIELD)
    return run_in(key) if isinstance(key, str) else None


def _budget(asked: SpawnArguments) -> Limits | None:
    limits = Limits(tokens=asked.budget_tokens, tool_calls=asked.budget_tool_calls, seconds=asked.budget_seconds)
    return None if limits == Limits() else limits


def _named(meta: Mapping[str, object], key: str) -> str:
    """Return a name from the meta data, empty where there is none that can be used: it may become a header, whole."""
    name = meta.get(key)
    is_name = isinstance(name, str) and len(name) <= NAME_CHARS_MAX and name.isascii() and name.isprintable()
    return name if isinstance(name, str) and is_name else ""
