"""The MCP tools of the runtime: names, descriptions and schemas, in a fixed order.

The text is for models: it says when to use a tool and what comes back.
"""

from collections.abc import Mapping
from typing import Final

from mcp_types import Tool, ToolAnnotations

from luftpause.services.runtime.orders import RuntimeSettings

HANDLES_MAX: Final = 1000

_HANDLE: Final = {"type": "string", "minLength": 1, "description": "A run's handle, as spawn returned it"}
_HANDLES: Final = {
    "type": "array",
    "items": _HANDLE,
    "minItems": 1,
    "maxItems": HANDLES_MAX,
    "description": "Handles of runs",
}
_RUN: Final = {
    "type": "object",
    "properties": {
        "handle": {"type": "string"},
        "status": {"type": "string", "enum": ["Running", "Finished", "Failed", "Cancelled"]},
        "result": {"type": ["string", "null"], "description": "The sub-agent's answer, once Finished"},
        "error": {"type": ["string", "null"], "description": "Why it Failed or was Cancelled"},
        "parent": {"type": ["string", "null"]},
        "children": {"type": "array", "items": {"type": "string"}},
        "toolCalls": {"type": "integer", "description": "Tool calls that the sub-agent asked for"},
        "failedToolCalls": {
            "type": "integer",
            "description": "How many of them failed: an answer after failed calls may not come from the tools",
        },
    },
    "required": ["handle", "status", "result", "error", "parent", "children", "toolCalls", "failedToolCalls"],
}
_RUNS: Final = {
    "type": "object",
    "properties": {"runs": {"type": "array", "items": _RUN}},
    "required": ["runs"],
}
_SPAWN_ARGUMENTS: Final = {
    "task": {"type": "string", "minLength": 1, "description": "What the sub-agent is to do; it sees nothing else"},
    "model": {"type": "string", "minLength": 1, "description": "Model that it runs on; left out: the default one"},
    "serviceClass": {
        "type": "string",
        "enum": ["interactive", "batch"],
        "default": "interactive",
        "description": "batch makes room for interactive work when the engines are busy",
    },
    "system": {"type": "string", "description": "System prompt before the task"},
    "maxToolCalls": {
        "type": "integer",
        "minimum": 0,
        "maximum": 1000,
        "description": "After so many tool calls it must answer",
    },
    "tools": {
        "type": "array",
        "items": {"type": "string"},
        "maxItems": 1000,
        "description": "Names of the tools that it may use, see the tools tool; left out: all of them",
    },
    "maxTokens": {
        "type": "integer",
        "minimum": 0,
        "maximum": 10_000_000,
        "description": "Longest reply in tokens, for each of its turns; 0 leaves that to the engine",
    },
    "parallelToolCalls": {
        "type": "boolean",
        "default": False,
        "description": "Whether it may ask for several tool calls in one reply, which then run at once",
    },
    "parent": {"type": "string", "minLength": 1, "description": "Handle of the run that this one is a child of"},
}


def _arguments(properties: Mapping[str, object], *required: str) -> dict[str, object]:
    schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return schema


TOOLS: Final = (
    Tool(
        name="spawn",
        title="Spawn a sub-agent",
        description=(
            "Start a sub-agent on a task and return its handle at once. Spawn several before you await them: they run"
            " at the same time. They go on when you disconnect and survive a restart of the runtime."
        ),
        input_schema=_arguments(_SPAWN_ARGUMENTS, "task"),
        output_schema={"type": "object", "properties": {"handle": {"type": "string"}}, "required": ["handle"]},
        annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False),
    ),
    Tool(
        name="await",
        title="Wait for sub-agents",
        description=(
            "Wait until all (or any) of these runs are over and return how they stand. When the time is up first, the"
            " runs that are not over come back as Running: await them again."
        ),
        input_schema=_arguments(
            {
                "handles": _HANDLES,
                "mode": {"type": "string", "enum": ["all", "any"], "default": "all", "description": "What to wait for"},
                "timeout": {
                    "type": "number",
                    "minimum": 0,
                    "description": "Seconds to wait at most",
                },
            },
            "handles",
        ),
        output_schema=_RUNS,
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
    Tool(
        name="status",
        title="Look at runs",
        description="Return how runs stand, without waiting. Without handles: all your runs.",
        input_schema=_arguments({"handles": _HANDLES}),
        output_schema=_RUNS,
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
    Tool(
        name="cancel",
        title="Cancel a run",
        description="End a run and every run below it. One that is over already stays as it is.",
        input_schema=_arguments({"handle": _HANDLE}, "handle"),
        output_schema=_RUN,
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
        ),
    ),
    Tool(
        name="tools",
        title="List the sub-agents' tools",
        description="Return the tools that spawn can give to a sub-agent.",
        input_schema=_arguments({}),
        output_schema={
            "type": "object",
            "properties": {
                "tools": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "server": {"type": "string"},
                            "description": {"type": "string"},
                            "inputSchema": {"type": "object"},
                            "readOnly": {"type": "boolean"},
                            "destructive": {"type": "boolean"},
                            "idempotent": {"type": "boolean"},
                        },
                        "required": [
                            "name",
                            "server",
                            "description",
                            "inputSchema",
                            "readOnly",
                            "destructive",
                            "idempotent",
                        ],
                    },
                }
            },
            "required": ["tools"],
        },
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
)


def tools_with(settings: RuntimeSettings) -> tuple[Tool, ...]:
    """Return the tools with the defaults and limits that are set written into their schemas."""
    set_values: Mapping[tuple[str, str], Mapping[str, float]] = {
        ("spawn", "maxToolCalls"): {"default": settings.max_tool_calls},
        ("spawn", "maxTokens"): {"default": settings.max_tokens},
        ("await", "timeout"): {"maximum": settings.await_max_s, "default": settings.await_default_s},
    }
    tools = {tool.name: tool.model_copy(deep=True) for tool in TOOLS}
    for (tool, argument), values in set_values.items():
        tools[tool].input_schema["properties"][argument].update(values)
    return tuple(tools.values())
