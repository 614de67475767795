"""The MCP tools of the runtime: names, descriptions and schemas, in a fixed order.

The text is for models: it says when to use a tool and what comes back.
"""

from collections.abc import Mapping
from typing import Final

from mcp_types import Tool, ToolAnnotations

from luftpause.core.dialects.decide import LABEL_CHARS_MAX, LABELS_MAX, LABELS_MIN
from luftpause.services.runtime.mcp_door import run_schemas
from luftpause.services.runtime.mcp_door.arguments import MESSAGES_SHOWN, RUNS_SHOWN
from luftpause.services.runtime.mcp_door.spawn_schema import COUNT_MAX, HANDLE, HANDLES, SPAWN_ARGUMENTS
from luftpause.services.runtime.orders import RuntimeSettings
from luftpause.services.runtime.service import OVERVIEW_MAX

TRANSCRIPT_MAX: Final = 200
"""Messages that one `transcript` returns at most."""

_LOOKS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_BEGINS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False)


def _arguments(properties: Mapping[str, object], *required: str) -> dict[str, object]:
    schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return schema


_SPAWN: Final = Tool(
    name="spawn",
    title="Spawn a sub-agent",
    description=(
        "Start a sub-agent on a task and return its handle at once. Spawn several before you await them: they run"
        " at the same time. They go on when you disconnect and survive a restart of the runtime."
    ),
    input_schema=_arguments(SPAWN_ARGUMENTS, "task"),
    output_schema=run_schemas.HANDLE,
    annotations=_BEGINS,
)
_AWAIT: Final = Tool(
    name="await",
    title="Wait for sub-agents",
    description=(
        "Wait until all (or any) of these runs are over and return how they stand. When the time is up first, the"
        " runs that are not over come back as Running: await them again. A run that comes back as AwaitingApproval"
        " waits for approve; where your user can be asked in a form, that happens during this call, and the time that"
        " they take is not counted."
    ),
    input_schema=_arguments(
        {
            "handles": HANDLES,
            "mode": {"type": "string", "enum": ["all", "any"], "default": "all", "description": "What to wait for"},
            "timeout": {"type": "number", "minimum": 0, "description": "Seconds to wait at most"},
        },
        "handles",
    ),
    output_schema=run_schemas.RUNS,
    annotations=_LOOKS,
)
_RUN: Final = Tool(
    name="run",
    title="Run a sub-agent to its end",
    description=(
        "Start a sub-agent on a task, wait until it is over and return how it stands: spawn and await in one call."
        " With an idempotencyKey the call can be repeated when its answer was lost."
    ),
    input_schema=_arguments(SPAWN_ARGUMENTS, "task"),
    output_schema=run_schemas.BEGUN_RUN,
    annotations=_BEGINS,
)
_STATUS: Final = Tool(
    name="status",
    title="Look at runs",
    description=(
        "Return how runs stand, without waiting. Without handles: your runs, those that are not over before the others,"
        " the latest first."
    ),
    input_schema=_arguments(
        {
            "handles": HANDLES,
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": OVERVIEW_MAX,
                "default": RUNS_SHOWN,
                "description": "How many runs to return at most where no handles are given",
            },
        }
    ),
    output_schema=run_schemas.SOME_RUNS,
    annotations=_LOOKS,
)
_CANCEL: Final = Tool(
    name="cancel",
    title="Cancel a run",
    description="End a run and every run below it. One that is over already stays as it is.",
    input_schema=_arguments({"handle": HANDLE}, "handle"),
    output_schema=run_schemas.RUN,
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
)
_APPROVE: Final = Tool(
    name="approve",
    title="Answer for a tool call",
    description=(
        "Allow or decline the tool call that a run in AwaitingApproval waits with, on behalf of your user: ask them"
        " first. Only the first answer counts. A declined call is told to the sub-agent, which goes on."
    ),
    input_schema=_arguments(
        {
            "handle": HANDLE,
            "allow": {"type": "boolean", "description": "Whether the tool may be called"},
            "scope": {
                "type": "string",
                "enum": ["once", "run", "tree"],
                "default": "once",
                "description": "Whether an allowed tool needs no further answer in this run, or in its whole tree",
            },
            "call": {
                "type": "string",
                "minLength": 1,
                "description": "Which of several waiting calls, as in pendingApproval; left out: the first",
            },
        },
        "handle",
        "allow",
    ),
    output_schema=run_schemas.APPROVED,
    # Somebody else's client should ask before a model answers in its user's stead.
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
)
_TOOLS: Final = Tool(
    name="tools",
    title="List the sub-agents' tools",
    description="Return the tools that spawn can give to a sub-agent.",
    input_schema=_arguments({}),
    output_schema=run_schemas.TOOL_LIST,
    annotations=_LOOKS,
)
_DECIDE: Final = Tool(
    name="decide",
    title="Choose a label",
    description=(
        "Choose the label that fits a text best and return how likely each one is, in one step of a small model."
        " Without labels a classifier chooses among its own."
    ),
    input_schema=_arguments(
        {
            "input": {"type": "string", "minLength": 1, "description": "The text"},
            "labels": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": LABEL_CHARS_MAX},
                "minItems": LABELS_MIN,
                "maxItems": LABELS_MAX,
                "description": "What to choose from",
            },
            "model": {"type": "string", "minLength": 1, "description": "Left out: the only one there is for this"},
        },
        "input",
    ),
    output_schema=run_schemas.DECISION,
    annotations=ToolAnnotations(read_only_hint=True),
)
_SEND: Final = Tool(
    name="send",
    title="Send a run another message",
    description=(
        "Give a sub-agent another message. A finished one goes on with all it knows, and can be awaited again; a"
        " running one reads it before its next turn. One that failed or was cancelled refuses."
    ),
    input_schema=_arguments(
        {"handle": HANDLE, "message": {"type": "string", "minLength": 1, "description": "What to tell it"}},
        "handle",
        "message",
    ),
    output_schema=run_schemas.RUN,
    annotations=_BEGINS,
)
_TRANSCRIPT: Final = Tool(
    name="transcript",
    title="Read a run's conversation",
    description="Return what was said in a run so far: prompts, replies, tool calls and their results.",
    input_schema=_arguments(
        {
            "handle": HANDLE,
            "start": {
                "type": "integer",
                "minimum": 0,
                "maximum": COUNT_MAX,
                "description": "Place of the first message to return; left out: the latest messages",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": TRANSCRIPT_MAX,
                "default": MESSAGES_SHOWN,
                "description": "How many messages to return at most",
            },
        },
        "handle",
    ),
    output_schema=run_schemas.TRANSCRIPT,
    annotations=_LOOKS,
)

TOOLS: Final = (_SPAWN, _AWAIT, _RUN, _STATUS, _CANCEL, _APPROVE, _TOOLS, _DECIDE, _SEND, _TRANSCRIPT)


def tools_with(settings: RuntimeSettings) -> tuple[Tool, ...]:
    """Return the tools with the defaults and limits that are set written into their schemas."""
    spawn_values = {
        "maxToolCalls": {"default": settings.max_tool_calls},
        "maxTokens": {"default": settings.max_tokens},
    }
    set_values: Mapping[str, Mapping[str, Mapping[str, float]]] = {
        "spawn": spawn_values,
        "run": spawn_values,
        "await": {"timeout": {"maximum": settings.await_max_s, "default": settings.await_default_s}},
    }
    tools = {tool.name: tool.model_copy(deep=True) for tool in TOOLS}
    for tool, arguments in set_values.items():
        for argument, values in arguments.items():
            tools[tool].input_schema["properties"][argument].update(values)
    return tuple(tools.values())
