"""JSON schemas of what the tools return."""

from typing import Final

Schema = dict[str, object]


def _exactly(properties: Schema) -> Schema:
    """Return the schema of an object that has all of these members."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _noted(schema: Schema) -> Schema:
    """Return the schema of the same, with a word about where the run stands if there is anything to know."""
    properties = schema["properties"]
    assert isinstance(properties, dict), "an object's schema"
    return {**schema, "properties": {**properties, "note": {"type": "string", "description": "Where the run stands"}}}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_AMOUNTS: Final[Schema] = {
    "type": "object",
    "properties": {
        "tokens": {"type": "integer"},
        "toolCalls": {"type": "integer"},
        "seconds": {"type": "integer"},
    },
}
_BUDGET: Final = _exactly(
    {
        "limits": {**_AMOUNTS, "description": "What was set at the spawn"},
        "used": {**_AMOUNTS, "description": "By the run and everything spawned below it"},
        "exceeded": {"type": ["string", "null"], "enum": ["tokens", "toolCalls", "seconds", None]},
    }
)
_APPROVAL: Final = _exactly(
    {
        "call": {"type": "string", "description": "Which call it is, for approve"},
        "tool": {"type": "string"},
        "arguments": {"description": "What the tool would be called with"},
        "reason": {"type": "string", "description": "Why somebody has to allow it"},
    }
)
_ORIGIN: Final = _exactly(
    {
        "door": {"type": "string", "enum": ["llm"]},
        "run": {"type": ["string", "null"], "description": "The run there; null until that is found"},
        "toolCall": {"type": ["string", "null"]},
        "thread": {"type": ["string", "null"]},
    }
)
_RUN_MEMBERS: Final[Schema] = {
    "handle": {"type": "string"},
    "status": {"type": "string", "enum": ["Running", "AwaitingApproval", "Finished", "Failed", "Cancelled"]},
    "result": {"type": ["string", "null"], "description": "The sub-agent's answer, once Finished"},
    "structured": {"description": "The answer's value, for a run with an outputSchema"},
    "error": {"type": ["string", "null"], "description": "Why it Failed or was Cancelled"},
    "parent": {"type": ["string", "null"]},
    "children": {"type": "array", "items": {"type": "string"}},
    "origin": {
        **_or_null(_ORIGIN),
        "description": "What of a run at the LLM door spawned it, where the client says so: above the root of a tree",
    },
    "toolCalls": {"type": "integer", "description": "Tool calls that the sub-agent asked for"},
    "failedToolCalls": {
        "type": "integer",
        "description": "How many of them failed: an answer after failed calls may not come from the tools",
    },
    "pendingApproval": {
        **_or_null(_APPROVAL),
        "description": "The first tool call that waits until somebody allows or declines it",
    },
    "budget": {**_or_null(_BUDGET), "description": "null for a run without one"},
}

RUN: Final = _exactly(_RUN_MEMBERS)
RUNS: Final = _exactly({"runs": {"type": "array", "items": RUN}})
SOME_RUNS: Final = _exactly(
    {
        "runs": {"type": "array", "items": RUN},
        "omitted": {"type": "integer", "description": "How many older runs that are over were left out"},
    }
)
HANDLE: Final = _noted(_exactly({"handle": {"type": "string"}}))
BEGUN_RUN: Final = _noted(RUN)
APPROVED: Final = _exactly(
    {
        **_RUN_MEMBERS,
        "decided": {"type": "boolean", "description": "false: it was answered already, or nothing waited"},
    }
)
DECISION: Final = _exactly(
    {
        "label": {"type": "string", "description": "The likeliest label"},
        "probabilities": {"type": "object", "additionalProperties": {"type": "number"}},
        "unscored": {"type": "array", "items": {"type": "string"}, "description": "Labels the model gave no score"},
        "model": {"type": "string"},
    }
)
TOOL_LIST: Final = _exactly(
    {
        "tools": {
            "type": "array",
            "items": _exactly(
                {
                    "name": {"type": "string"},
                    "server": {"type": "string"},
                    "description": {"type": "string"},
                    "inputSchema": {"type": "object"},
                    "readOnly": {"type": "boolean"},
                    "destructive": {"type": "boolean"},
                    "idempotent": {"type": "boolean"},
                }
            ),
        }
    }
)
TRANSCRIPT: Final = _exactly(
    {
        "handle": {"type": "string"},
        "messages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "place": {"type": "integer", "description": "Counted from 0"},
                    "role": {"type": "string", "enum": ["system", "user", "assistant", "tool"]},
                    "text": {"type": "string"},
                    "toolCalls": {
                        "type": "array",
                        "items": _exactly(
                            {"call": {"type": "string"}, "tool": {"type": "string"}, "arguments": {"type": "string"}}
                        ),
                    },
                    "call": {"type": "string", "description": "The tool call that this answers"},
                },
                "required": ["place", "role", "text"],
            },
        },
        "total": {"type": "integer", "description": "How many messages there are by now"},
    }
)
