"""What the tools can be given: as values, and what is wrong with arguments that do not fit."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, Literal, TypeGuard

import msgspec

from luftpause.core.model.turns import ServiceClass
from luftpause.services.runtime.schema_fit import strictly
from luftpause.services.runtime.schema_words import shown
from luftpause.services.runtime.soundness import oddity

RUNS_SHOWN: Final = 200
"""How many runs a client that names none is shown: what costs a few milliseconds."""

MESSAGES_SHOWN: Final = 50
LIKENESS_MIN: Final = 0.6
STEPS_MAX: Final = 20_000
"""Of judging arguments: more than all lists at their longest take."""

NAMES_COMPARED_MAX: Final = 100
"""Characters of a name that are compared with the known ones: comparing takes time in the square of them."""


class SpawnArguments(msgspec.Struct, rename="camel"):
    """Of `spawn`, and of `run`."""

    task: str
    model: str | None = None
    models: tuple[str, ...] = ()
    service_class: ServiceClass | None = None
    system: str | None = None
    max_tool_calls: int | None = None
    tools: tuple[str, ...] | None = None
    max_tokens: int | None = None
    parallel_tool_calls: bool = False
    parent: str | None = None
    budget_tokens: int | None = None
    budget_tool_calls: int | None = None
    budget_seconds: int | None = None
    approve_tools: tuple[str, ...] = ()
    output_schema: dict[str, object] | None = None
    after: tuple[str, ...] = ()
    idempotency_key: str | None = None


class AwaitArguments(msgspec.Struct):
    """Of `await`."""

    handles: tuple[str, ...]
    mode: Literal["all", "any"] = "all"
    timeout: float | None = None


class StatusArguments(msgspec.Struct):
    """Of `status`."""

    handles: tuple[str, ...] | None = None
    limit: int = RUNS_SHOWN


class CancelArguments(msgspec.Struct):
    """Of `cancel`."""

    handle: str


class ApproveArguments(msgspec.Struct):
    """Of `approve`."""

    handle: str
    allow: bool
    scope: Literal["once", "run", "tree"] = "once"
    call: str | None = None


class SendArguments(msgspec.Struct):
    """Of `send`."""

    handle: str
    message: str


class TranscriptArguments(msgspec.Struct):
    """Of `transcript`. `start` is None for the last messages."""

    handle: str
    start: int | None = None
    limit: int = MESSAGES_SHOWN


class DecideArguments(msgspec.Struct):
    """Of `decide`."""

    input: str
    labels: tuple[str, ...] | None = None
    model: str | None = None


def complaint(arguments: Mapping[str, object], schema: Mapping[str, object]) -> str:
    """Return what is wrong with a tool's arguments, in words and with the way out; empty for nothing."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    for name, value in arguments.items():
        if name not in known:
            return _unknown(name, list(known))
        if _is_too_long(value, known[name]):
            return f"{name}: {len(value)} items are too many (maxItems: {known[name]['maxItems']})"
    return oddity(arguments) or strictly(arguments, schema, STEPS_MAX)


def _is_too_long(value: object, declared: Mapping[str, object]) -> TypeGuard[list[object]]:
    """Whether a list has more items than it may: said before each of them is looked at."""
    most = declared.get("maxItems")
    return isinstance(value, list) and isinstance(most, int) and len(value) > most


def _unknown(name: str, known: list[str]) -> str:
    """Return what is told about a parameter that there is not: which one was meant, or which ones there are."""
    plain = {_plain(each): each for each in known}
    meant = get_close_matches(_plain(name[:NAMES_COMPARED_MAX]), plain, n=1, cutoff=LIKENESS_MIN)
    if meant:
        return f"there is no parameter {shown(name)}; did you mean {plain[meant[0]]!r}?"
    listed = f"the parameters are {', '.join(known)}" if known else "there are none"
    return f"there is no parameter {shown(name)}; {listed}"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
