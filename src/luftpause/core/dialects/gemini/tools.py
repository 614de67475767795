"""Tools of a Gemini request as functions of Chat Completions, and how they are to be chosen.

What Google runs itself (searches, reading pages, running code) is nothing that an engine does: see `server_tools`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from luftpause.core.dialects.gemini.request import (
    FunctionCallingConfig,
    FunctionDeclaration,
    Members,
    unfitting,
    unspeakable,
)
from luftpause.core.dialects.gemini.schemas import json_schema
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.server_tools import left_out

_FUNCTIONS: Final = "functionDeclarations"
_GOOGLES: Final = (
    "codeExecution",
    "enterpriseWebSearch",
    "googleMaps",
    "googleSearch",
    "googleSearchRetrieval",
    "urlContext",
)
_NO_SCHEMA: Final[Mapping[str, object]] = {"type": "object", "properties": {}}
_CHOICES: Final = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}


def declared(tools: Iterable[Members]) -> list[FunctionDeclaration]:
    """Return the functions that a request offers, in order.

    Raises:
        BadRequestError: it relies on something that only Google runs, or a declaration has not the shape of one.
    """
    tools = tuple(tools)
    functions = [each for tool in tools for each in _declarations(tool.get(_FUNCTIONS))]
    others = _others(tools)
    refused = [name for name in others if name not in _GOOGLES]
    if refused:
        raise unspeakable(f"the request offers the tool {refused[0]!r}")
    left_out(others, has_others=bool(functions))
    return functions


def googles_tools(tools: Iterable[Members]) -> list[str]:
    """Return which tools run at Google, by the names that a request calls them."""
    return [name for name in _others(tools) if name in _GOOGLES]


def functions(declarations: Iterable[FunctionDeclaration]) -> list[Mapping[str, object]]:
    """Return the `tools` of a Chat Completions request."""
    return [{"type": "function", "function": _function(each)} for each in declarations]


def chosen(
    config: FunctionCallingConfig, declarations: Sequence[FunctionDeclaration]
) -> tuple[object, Sequence[FunctionDeclaration]]:
    """Return the `tool_choice` of a Chat Completions request, and the functions that are offered then.

    The list is shortened only where nothing else will do: it stands in the beginning of the prompt, which engines
    cache.

    Raises:
        BadRequestError: it allows what the request does not declare, or chooses in a way that we do not know.
    """
    mode = config.mode.upper().replace("MODE_UNSPECIFIED", "AUTO")
    if mode not in _CHOICES:
        raise unspeakable(f"functions are to be called in the mode {config.mode!r}")
    allowed = config.allowed_function_names or ()
    known = [each.name for each in declarations]
    for name in allowed:
        if name not in known:
            raise BadRequestError(f"`allowedFunctionNames` has {name!r}, which the request does not declare")
    if not allowed or mode in ("AUTO", "NONE"):
        return _CHOICES[mode], declarations
    if mode == "ANY" and len(allowed) == 1:
        return {"type": "function", "function": {"name": allowed[0]}}, declarations
    return _CHOICES[mode], [each for each in declarations if each.name in allowed]


def _others(tools: Iterable[Members]) -> list[str]:
    """Return what is offered beside functions."""
    return [name for tool in tools for name, value in tool.items() if name != _FUNCTIONS and value is not None]


def _declarations(said: object) -> list[FunctionDeclaration]:
    try:
        return msgspec.convert(said, list[FunctionDeclaration] | None) or []
    except msgspec.ValidationError as error:
        raise unfitting(error) from error


def _function(declaration: FunctionDeclaration) -> Mapping[str, object]:
    function: dict[str, object] = {"name": declaration.name}
    if declaration.description is not None:
        function["description"] = declaration.description
    if declaration.parameters_json_schema is not None:
        function["parameters"] = declaration.parameters_json_schema
    else:
        function["parameters"] = json_schema(declaration.parameters) if declaration.parameters else _NO_SCHEMA
    return function
