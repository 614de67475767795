"""The tools of a request as functions of Chat Completions, and what a call of one of these functions means here.

Responses has tools that Chat Completions has not. A `namespace` holds functions of its own: each becomes a function
whose name begins with the namespace's. A `custom` tool takes a text instead of JSON: it becomes a function with that
text as its one argument. `tool_search` that the client runs becomes a function as well. Tools that run at the provider
are left out by the rule of `server_tools`; those that the client runs and only the provider's models know are refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.request import BadRequestError

NAME_CHARS_MAX: Final = 64
"""Longest function name that engines take."""

CUSTOM_ARGUMENT: Final = "input"
"""The one argument of the function that stands for a custom tool."""

TOOL_SEARCH: Final = "tool_search"

_SERVER_TOOLS: Final = {
    "web_search": "web_search",
    "web_search_2025_08_26": "web_search",
    "web_search_preview": "web_search",
    "web_search_preview_2025_03_11": "web_search",
    "image_generation": "image_generation",
    "file_search": "file_search",
    "code_interpreter": "code_interpreter",
    "mcp": "mcp",
}
"""Tools that run at the provider, in every version, and what they are called."""


class ToolKind(Enum):
    """What an output item that calls a tool is."""

    FUNCTION = "function_call"
    CUSTOM = "custom_tool_call"
    SEARCH = "tool_search_call"


class Tool(Struct, frozen=True):
    """A tool as the client knows it."""

    kind: ToolKind
    name: str
    namespace: str = ""


class Choice(Struct):
    """A `tool_choice` that is an object, or a tool that one of them names."""

    type: str | None = None
    name: str | None = None
    namespace: str | None = None
    mode: str | None = None
    tools: list["Choice"] | None = None


class ToolSpec(Struct):
    """A tool of a request."""

    type: str
    name: str | None = None
    description: str | None = None
    parameters: Raw = Raw(b"null")
    strict: bool | None = None
    tools: list["ToolSpec"] | None = None
    format: "_Format | None" = None
    execution: str | None = None


class _Format(Struct):
    type: str | None = None
    syntax: str | None = None
    definition: str | None = None


def callable_tools(spec: ToolSpec, namespace: str = "") -> Iterator[tuple[Tool, ToolSpec]]:
    """Yield the tools that a model could call, none for one that it can go on without.

    Raises:
        BadRequestError: a tool that cannot be offered, or without a name.
    """
    if spec.type == "namespace" and not namespace:
        for nested in spec.tools or ():
            yield from callable_tools(nested, _named(spec))
    elif spec.type == TOOL_SEARCH and spec.execution == "client":
        yield Tool(ToolKind.SEARCH, TOOL_SEARCH), spec
    elif spec.type in ("function", "custom"):
        yield Tool(_KINDS[spec.type], _named(spec), namespace), spec
    elif server_tool(spec) is None:
        raise BadRequestError(
            f"a tool of type {spec.type!r} cannot be offered: the engine of this model speaks Chat Completions, "
            "which has functions only"
        )


def server_tool(spec: ToolSpec | Choice) -> str | None:
    """Return what a tool that runs at the provider is called, None of any other."""
    return _SERVER_TOOLS.get(spec.type or "")


class ToolTable:
    """Which function stands for which tool."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._tools: dict[str, Tool] = {}
        self._functions: dict[Tool, dict[str, object]] = {}
        for spec in specs:
            for tool, nested in callable_tools(spec):
                self._enter(tool, nested)

    def tool(self, function: str) -> Tool:
        """Return the tool that a function stands for. A function that nobody offered is a tool of that name."""
        return self._tools.get(function) or Tool(ToolKind.FUNCTION, function)

    def function(self, tool: Tool) -> str:
        """Return the name of the function for a tool, which may be one that is no longer offered."""
        known = self._functions.get(tool)
        return str(known["name"]) if known else _flat(tool)

    def functions(self, allowed: Sequence[Tool] | None = None) -> list[dict[str, object]]:
        """Return the functions as Chat Completions has them; only those of `allowed` where it is given."""
        return [
            {"type": "function", "function": function}
            for tool, function in self._functions.items()
            if allowed is None or tool in allowed
        ]

    def chosen(self, choice: Choice) -> Tool:
        """Return the tool that a choice names.

        Raises:
            BadRequestError: it names none that is offered.
        """
        kind = _KINDS.get(choice.type or "")
        name = TOOL_SEARCH if kind is ToolKind.SEARCH else choice.name or ""
        tool = None if kind is None else Tool(kind, name, choice.namespace or "")
        if tool is None or tool not in self._functions:
            named = " ".join(filter(None, (choice.type, choice.namespace, choice.name)))
            raise BadRequestError(
                f"`tool_choice` names {named or 'nothing'!r}, which is no tool that can be called here"
            )
        return tool

    def _enter(self, tool: Tool, spec: ToolSpec) -> None:
        if tool in self._functions:
            return
        name = _flat(tool)
        number = 2
        while name in self._tools:
            ending = f"_{number}"
            name, number = _flat(tool)[: NAME_CHARS_MAX - len(ending)] + ending, number + 1
        self._tools[name] = tool
        self._functions[tool] = {"name": name, **_declared(tool.kind, spec)}


_NULL: Final = Raw(b"null")
_KINDS: Final = {"function": ToolKind.FUNCTION, "custom": ToolKind.CUSTOM, TOOL_SEARCH: ToolKind.SEARCH}
_PARAMETERS: Final[dict[ToolKind, dict[str, object]]] = {
    ToolKind.FUNCTION: {"type": "object", "properties": {}},
    ToolKind.CUSTOM: {
        "type": "object",
        "properties": {CUSTOM_ARGUMENT: {"type": "string", "description": "The whole input, as it stands."}},
        "required": [CUSTOM_ARGUMENT],
        "additionalProperties": False,
    },
    ToolKind.SEARCH: {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
"""Of a function for a tool that does not say any."""


def custom_arguments(text: str) -> str:
    """Return the arguments of the function for a custom tool that is called with this text."""
    return msgspec.json.encode({CUSTOM_ARGUMENT: text}).decode()


def _flat(tool: Tool) -> str:
    return f"{tool.namespace}__{tool.name}"[:NAME_CHARS_MAX] if tool.namespace else tool.name


def _named(spec: ToolSpec) -> str:
    if not spec.name:
        raise BadRequestError(f"a tool of type {spec.type!r} has no name")
    return spec.name


def _declared(kind: ToolKind, spec: ToolSpec) -> dict[str, object]:
    """Return what a function is, without its name."""
    declared: dict[str, object] = {}
    description = _custom_description(spec) if kind is ToolKind.CUSTOM else spec.description
    if description:
        declared["description"] = description
    untold = kind is ToolKind.CUSTOM or spec.parameters == _NULL
    declared["parameters"] = _PARAMETERS[kind] if untold else spec.parameters
    if spec.strict:
        declared["strict"] = True
    return declared


def _custom_description(spec: ToolSpec) -> str:
    """Return what tells a model how to call a custom tool, whose grammar no engine can enforce here."""
    parts = [spec.description] if spec.description else []
    if spec.format is not None and spec.format.definition:
        parts.append(f"The input follows this {spec.format.syntax or ''} grammar:\n{spec.format.definition}")
    return "\n\n".join(parts)
