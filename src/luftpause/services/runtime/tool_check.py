"""Whether a tool call can be made: the tool is one of the run's, and the arguments are what its schema asks for.

A call that cannot is given back to the model with what would be right, instead of failing somewhere further on.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from luftpause.core.runs.actions import CheckCall
from luftpause.core.runs.tools import ToolSpec, find
from luftpause.services.runtime.coercion import fitted
from luftpause.services.runtime.schema_fit import misfit
from luftpause.services.runtime.schema_words import kinds_of, shown
from luftpause.services.runtime.soundness import oddity

_SHAPE_MAX: Final = 2000
_NAMES_MAX: Final = 20
_NEAR_MAX: Final = 3
_NEAR_CHARS_MAX: Final = 64
_NEAR_AMONG_MAX: Final = 200
_EXAMPLE_MAX: Final = 8
_ENCODED_MAX: Final = 3
_CUT_TEXT: Final = (
    "Error: not called, your reply reached its greatest length in the middle of this call. Make the call again with"
    " shorter arguments, and say less before it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundCall:
    """It can be made."""

    tool: ToolSpec
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsoundCall:
    """It cannot; `text` tells the model why and what would fit."""

    text: str


def verdict(call: CheckCall, tools: Sequence[ToolSpec]) -> SoundCall | UnsoundCall:
    """Return whether a call can be made with the tools that the run was given."""
    if call.cut:
        return UnsoundCall(text=_CUT_TEXT)
    tool = find(tools, call.tool)
    if tool is None:
        return UnsoundCall(text=_unknown(call.tool, tools))
    arguments = arguments_for(tool, call.arguments)
    if arguments is None:
        return UnsoundCall(text=f"Error: the arguments are no JSON object. {_expected(tool)}")
    complaint = _schema_instead(arguments, tool) or oddity(arguments) or misfit(arguments, tool.schema)
    if complaint:
        return UnsoundCall(text=f"Error: {complaint}. {_expected(tool)}")
    return SoundCall(tool=tool, arguments=arguments)


def arguments_for(tool: ToolSpec, text: str) -> dict[str, object] | None:
    """Return the arguments that a model wrote, slips mended, None if they are no object. The same for the same text."""
    arguments = parse_arguments(text)
    return None if arguments is None else fitted(arguments, tool.schema)


def names_of(tools: Sequence[ToolSpec]) -> str:
    """Return the tools' names as a message may list them: some, if they are many."""
    names = ", ".join(tool.name for tool in tools[:_NAMES_MAX]) or "none"
    more = len(tools) - _NAMES_MAX
    return f"{names} and {more} more" if more > 0 else names


def parse_arguments(text: str) -> dict[str, object] | None:
    """Return the arguments that a model wrote, None if they are no object. Nothing at all means no arguments.

    Some engines and models encode them once more, as a JSON string.
    """
    found: object = text
    for _ in range(_ENCODED_MAX):
        if not isinstance(found, str):
            break
        try:
            found = msgspec.json.decode(found) if found.strip() else None
        except (ValueError, RecursionError):
            return None
    if found is None:
        return {}
    return found if isinstance(found, dict) else None


def _unknown(name: str, tools: Sequence[ToolSpec]) -> str:
    known = [tool.name for tool in tools[:_NEAR_AMONG_MAX]]
    near = difflib.get_close_matches(name[:_NEAR_CHARS_MAX], known, n=_NEAR_MAX)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"Error: there is no tool {shown(name)}.{hint} Tools: {names_of(tools)}."


def _schema_instead(arguments: Mapping[str, object], tool: ToolSpec) -> str:
    """Return what is wrong when a model passes what it was told about the arguments in place of arguments."""
    properties = tool.schema.get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    whole = isinstance(arguments.get("properties"), dict) and "properties" not in declared
    parts = [name for name, value in arguments.items() if _is_declaration(value) and name in declared]
    if not whole and not any(misfit(arguments[name], tool.schema, part=declared[name]) for name in parts):
        return ""
    example = ", ".join(f'"{name}": <{_kind(declared[name])}>' for name in list(declared)[:_EXAMPLE_MAX])
    return f"this is the schema of the arguments, not arguments; give values, as {{{example}}}"


def _is_declaration(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "value" not in value


def _kind(declared: object) -> str:
    return " or ".join(kinds_of(declared)) if isinstance(declared, Mapping) and kinds_of(declared) else "value"


def _expected(tool: ToolSpec) -> str:
    shape = json.dumps(tool.schema, separators=(",", ":"))[:_SHAPE_MAX]
    return f"{tool.name} takes arguments of this JSON schema: {shape}"
