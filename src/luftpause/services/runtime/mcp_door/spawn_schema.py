"""What `spawn` and `run` can be given, as a JSON schema."""

from typing import Final

HANDLES_MAX: Final = 1000
NAMES_MAX: Final = 1000
MODELS_MAX: Final = 10
KEY_CHARS_MAX: Final = 200
COUNT_MAX: Final = 2**53 - 1
"""The largest whole number that every reader of JSON reads as such."""

HANDLE: Final[dict[str, object]] = {
    "type": "string",
    "minLength": 1,
    "description": "A run's handle, as spawn returned it",
}
HANDLES: Final[dict[str, object]] = {
    "type": "array",
    "items": HANDLE,
    "minItems": 1,
    "maxItems": HANDLES_MAX,
    "description": "Handles of runs",
}
SPAWN_ARGUMENTS: Final[dict[str, object]] = {
    "task": {"type": "string", "minLength": 1, "description": "What the sub-agent is to do; it sees nothing else"},
    "model": {"type": "string", "minLength": 1, "description": "Model that it runs on; left out: the default one"},
    "models": {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "maxItems": MODELS_MAX,
        "description": "Models that it goes on with, in this order, when a turn cannot be had from the one before",
    },
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
        "maxItems": NAMES_MAX,
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
    "budgetTokens": {
        "type": "integer",
        "minimum": 1,
        "maximum": COUNT_MAX,
        "description": "Prompt and completion tokens that it and all runs below it may use together",
    },
    "budgetToolCalls": {
        "type": "integer",
        "minimum": 1,
        "maximum": COUNT_MAX,
        "description": "Tool calls that it and all runs below it may make together",
    },
    "budgetSeconds": {
        "type": "integer",
        "minimum": 1,
        "maximum": COUNT_MAX,
        "description": "Seconds after which it and all runs below it are cancelled",
    },
    "approveTools": {
        "type": "array",
        "items": {"type": "string"},
        "maxItems": NAMES_MAX,
        "description": "Names of tools that it may call only after a person allowed the call, besides destructive ones",
    },
    "outputSchema": {
        "type": "object",
        "description": (
            "JSON schema that its answer, as JSON, must fit, of the draft that $schema names (2020-12 where it names"
            " none); it is told once what does not fit. Nothing is fetched: a $ref leads into the schema itself."
            " Patterns are of RE2, without look-around; of formats the usual ones are checked"
        ),
    },
    "after": {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "maxItems": HANDLES_MAX,
        "description": "Handles of runs that it waits for before it begins; it is given their results",
    },
    "idempotencyKey": {
        "type": "string",
        "minLength": 1,
        "maxLength": KEY_CHARS_MAX,
        "description": "A name for this very request: repeating it returns the first run instead of a second one",
    },
}
