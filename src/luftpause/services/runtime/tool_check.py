"""Whether a tool call can be made: the tool is one of the run's, and the arguments are what its schema asks for.

A call that cannot is given back to the model with what would be right, instead of failing somewhere further on.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from luftpause.core.runs.actions import CheckCall
from luftpause.core.runs.tools import ToolSpec, find
from luftpause.services.runtime.schema_fit import misfit, shown
from luftpause.services.runtime.soundness import oddity

_SHAPE_MAX: Final = 2000
_NAMES_MAX: Final = 20


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
    tool = find(tools, call.tool)
    if tool is None:
        return UnsoundCall(text=f"Error: there is no tool {shown(call.tool)}. Tools: {names_of(tools)}.")
    arguments = parse_arguments(call.arguments)
    if arguments is None:
        return UnsoundCall(text=f"Error: the arguments are no JSON object. {_expected(tool)}")
    complaint = oddity(arguments) or misfit(arguments, tool.schema)
    if complaint:
        return UnsoundCall(text=f"Error: {complaint}. {_expected(tool)}")
    return SoundCall(tool=tool, arguments=arguments)


def names_of(tools: Sequence[ToolSpec]) -> str:
    """Return the tools' names as a message may list them: some, if they are many."""
    names = ", ".join(tool.name for tool in tools[:_NAMES_MAX]) or "none"
    more = len(tools) - _NAMES_MAX
    return f"{names} and {more} more" if more > 0 else names


def parse_arguments(text: str) -> dict[str, object] | None:
    """Return the arguments that a model wrote, None if they are no object. Nothing at all means no arguments."""
    try:
        return msgspec.json.decode(text, type=dict[str, object]) if text.strip() else {}
    except (ValueError, RecursionError):
        return None


def _expected(tool: ToolSpec) -> str:
    shape = json.dumps(tool.schema, separators=(",", ":"))[:_SHAPE_MAX]
    return f"{tool.name} takes arguments of this JSON schema: {shape}"
