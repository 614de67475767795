"""Whether a tool call can be made: the tool is one of the run's, and the arguments are what its schema asks for.

A call that cannot is given back to the model with what would be right, instead of failing somewhere further on.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jsonschema
import msgspec
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from luftpause.core.runs.actions import CheckCall
from luftpause.ports.tools import ToolSpec

_SHAPE_MAX: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundCall:
    """It can be made."""

    tool: ToolSpec
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsoundCall:
    """It cannot; `text` tells the model why and what would fit."""

    text: str


def find(tools: Sequence[ToolSpec], name: str) -> ToolSpec | None:
    """Return the tool of this offered or qualified name."""
    return next((tool for tool in tools if name in (tool.name, tool.qualified)), None)


def verdict(call: CheckCall, tools: Sequence[ToolSpec]) -> SoundCall | UnsoundCall:
    """Return whether a call can be made with the tools that the run was given."""
    tool = find(tools, call.tool)
    if tool is None:
        names = ", ".join(tool.name for tool in tools) or "none"
        return UnsoundCall(text=f"Error: there is no tool {call.tool!r}. Tools: {names}.")
    arguments = parse_arguments(call.arguments)
    if arguments is None:
        return UnsoundCall(text=f"Error: the arguments are no JSON object. {_expected(tool)}")
    complaint = misfit(arguments, tool.schema)
    if complaint:
        return UnsoundCall(text=f"Error: {complaint}. {_expected(tool)}")
    return SoundCall(tool=tool, arguments=arguments)


def parse_arguments(text: str) -> dict[str, object] | None:
    """Return the arguments that a model wrote, None if they are no object. Nothing at all means no arguments."""
    try:
        return msgspec.json.decode(text, type=dict[str, object]) if text.strip() else {}
    except msgspec.MsgspecError:
        return None


def misfit(value: Mapping[str, Any], schema: Mapping[str, object]) -> str:
    """Return what is wrong with a value in one sentence, empty when it fits or the schema itself makes no sense."""
    checker: type[Validator] = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        checker.check_schema(dict(schema))
        # An own, empty registry: a schema from a stranger must not make us fetch anything.
        validator: Validator = checker(dict(schema), registry=Registry())
        worst = jsonschema.exceptions.best_match(validator.iter_errors(value))
    except (jsonschema.SchemaError, Unresolvable):
        return ""  # the server checks its own arguments
    if worst is None:
        return ""
    where = ".".join(str(part) for part in worst.absolute_path)
    return f"{where}: {worst.message}" if where else worst.message


def _expected(tool: ToolSpec) -> str:
    shape = json.dumps(tool.schema, separators=(",", ":"))[:_SHAPE_MAX]
    return f"{tool.name} takes arguments of this JSON schema: {shape}"
