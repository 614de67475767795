"""Tools of a Messages request as functions of Chat Completions, and which of them the model is offered.

A tool with `defer_loading` is offered only once the conversation names it: a tool search returned a reference to it,
or a system message added it. Such tools come last, in the order of being named, so that the list only grows at its end
and what an engine has cached of the prompt before it stays good. Searching on the server is nothing that an engine
does; where a request relies on that, every tool is offered from the start. Other tools that run there: `server_tools`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from luftpause.core.dialects.anthropic_messages.request import NULL, Block, Message, Tool, ToolChoice, unspeakable
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.server_tools import left_out

_SERVER_SEARCH: Final = "tool_search_tool_"
_SERVER_TOOLS: Final = ("web_search", "web_fetch", "code_execution", "advisor")
"""Their types go on with a date: `web_search_20250305`."""
_NO_SCHEMA: Final[Mapping[str, object]] = {"type": "object", "properties": {}}


def offered_tools(declared: Iterable[Tool], conversation: Iterable[Message]) -> list[Tool]:
    """Return the tools that the model may call, in order.

    Raises:
        BadRequestError: all of them run on Anthropic's servers, or only Anthropic's models know what one takes.
    """
    declared = tuple(declared)
    known: dict[str, Tool] = {}
    searched_there = False
    for tool in declared:
        if (tool.type or "custom") == "custom":
            known[tool.name] = tool
        elif (tool.type or "").startswith(_SERVER_SEARCH):
            searched_there = True
        elif _server_tool(tool) is None:
            raise unspeakable(f"the request offers the tool type {tool.type!r}")
    left_out(server_tools(declared), has_others=bool(known))
    offered = {name: tool for name, tool in known.items() if searched_there or not tool.defer_loading}
    for change in _changes(conversation):
        known.update(change.defined)
        if change.name in known:
            offered.pop(change.name, None) if change.removed else offered.setdefault(change.name, known[change.name])
    return list(offered.values())


def server_tools(declared: Iterable[Tool]) -> list[str]:
    """Return which tools run on Anthropic's servers, by what they are called in every version."""
    return [name for name in map(_server_tool, declared) if name is not None]


def _server_tool(tool: Tool) -> str | None:
    """Return the name of a tool that runs there, None of any other."""
    kind = tool.type or ""
    return next((name for name in _SERVER_TOOLS if kind == name or kind.startswith(f"{name}_2")), None)


def functions(tools: Iterable[Tool]) -> list[Mapping[str, object]]:
    """Return the `tools` of a Chat Completions request."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def choice(chosen: ToolChoice, offered: Iterable[Tool]) -> object:
    """Return the `tool_choice` of a Chat Completions request.

    Raises:
        BadRequestError: the request forces a tool that it does not offer, or chooses in a way that we do not know.
    """
    if chosen.type == "tool":
        if all(tool.name != chosen.name for tool in offered):
            raise BadRequestError(f"`tool_choice` names the tool {chosen.name!r}, which the request does not offer")
        return {"type": "function", "function": {"name": chosen.name}}
    if chosen.type not in _CHOICES:
        raise unspeakable(f"`tool_choice` is of type {chosen.type!r}")
    return _CHOICES[chosen.type]


_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}


class _Change(Struct):
    """The conversation names a tool: from here on it is offered, or no longer."""

    name: str
    removed: bool = False
    defined: dict[str, Tool] = {}


class _Reference(Struct):
    type: str
    name: str = ""
    definition: Tool | None = None


def _changes(conversation: Iterable[Message]) -> Iterator[_Change]:
    for message in conversation:
        for block in message.content if isinstance(message.content, list) else ():
            if block.type == "tool_result":
                yield from (_Change(name) for name in _references(block))
            elif block.type in ("tool_addition", "tool_removal"):
                yield _change(block)


def _references(result: Block) -> list[str]:
    """Return the tools that a tool search found."""
    if b'"tool_reference"' not in bytes(result.content):
        return []
    try:
        blocks = msgspec.json.decode(result.content, type=list[Block])
    except msgspec.DecodeError:
        return []
    return [block.tool_name for block in blocks if block.type == "tool_reference"]


def _change(block: Block) -> _Change:
    try:
        tool = msgspec.json.decode(block.tool, type=_Reference)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"a block of type {block.type!r} names no tool") from error
    if tool.type == "tool_definition" and tool.definition and (tool.definition.type or "custom") == "custom":
        return _Change(tool.definition.name, defined={tool.definition.name: tool.definition})
    if tool.type != "tool_reference":
        raise unspeakable(f"a block of type {block.type!r} names a tool by {tool.type!r}")
    return _Change(tool.name, removed=block.type == "tool_removal")


def _function(tool: Tool) -> Mapping[str, object]:
    function: dict[str, object] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    function["parameters"] = _NO_SCHEMA if tool.input_schema == NULL else tool.input_schema
    if tool.strict:
        function["strict"] = True
    return function
