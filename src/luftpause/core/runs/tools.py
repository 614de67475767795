"""The tools that a run was given, as they were on the day of its spawn.

They are part of the run: whatever their servers list later, every turn offers the same tools under the same names, so
that the prompt's prefix stays the same and a name never comes to mean another tool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """What a tool's server says of it; the defaults are what silence means.

    Attributes:
        says_destructive: it said so itself. Silence means destructive too, but nobody is asked for silence.
    """

    read_only: bool = False
    destructive: bool = True
    says_destructive: bool = False
    idempotent: bool = False
    open_world: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as models see it.

    Attributes:
        name: offered to models, unique among the tools that it is offered with.
        server: as configured.
        tool: the name at its server.
        schema: JSON Schema of its arguments, an object.
    """

    name: str
    server: str
    tool: str
    description: str
    schema: Mapping[str, object]
    hints: ToolHints = ToolHints()

    @property
    def qualified(self) -> str:
        """The long name, which clients may use too: what server it is of, and what that calls it."""
        return f"{self.server}__{self.tool}"

    @property
    def repeatable(self) -> bool:
        """Whether calling it twice with the same arguments does what calling it once does."""
        return self.hints.read_only or self.hints.idempotent


def find(tools: Sequence[ToolSpec], name: str) -> ToolSpec | None:
    """Return the tool that is offered under this name, else the only one whose long name it is."""
    for tool in tools:
        if tool.name == name:
            return tool
    meant = [tool for tool in tools if tool.qualified == name]
    return meant[0] if len(meant) == 1 else None
