"""Which tool a name means, as every model calls it.

Our runtime offers a tool by its bare name where that is its alone, else as `server__tool`. Claude Code says
`mcp__server__tool`. A tool of a server has one identity, whoever calls it in either of these ways.
"""

from typing import Final, TypeAlias

from luftpause.core.model.ids import ToolName

Tool: TypeAlias = tuple[str, str]
"""Server and tool; the server is empty where the name does not tell it."""

TOOLS_MAX: Final = 16
"""Different tools of one answer that are told of, the first ones."""

TOOL_CHARS_MAX: Final = 128
"""Of a longer name the rest is dropped. No engine and no harness takes names as long as this."""

A_PERSON: Final = ToolName("a person")
"""What a run is out on while a person is asked to allow a call of its: no tool's name has a blank in it."""

_MCP: Final = "mcp__"
_BETWEEN: Final = "__"


def canonical(name: ToolName) -> ToolName:
    """Return the one name of a tool by which it is remembered, bounded; `tool_of` says the same of both."""
    kept = ToolName(name[:TOOL_CHARS_MAX])
    bare = ToolName(kept.removeprefix(_MCP))
    return bare if tool_of(bare) == tool_of(kept) else kept


def tool_of(name: ToolName) -> Tool:
    """Return server and tool of a name. A name with nothing on one side of the underscores is a plain one."""
    kept = name[:TOOL_CHARS_MAX]
    if _BETWEEN not in kept:
        return "", kept
    server, _, tool = kept.removeprefix(_MCP).partition(_BETWEEN)
    return (server, tool) if server and tool else ("", kept)
