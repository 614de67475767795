"""The tools that sub-agents may call, wherever they live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """What a tool's server says of it; the defaults are what silence means."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as models see it.

    Attributes:
        name: offered to models: the bare name when one server alone has it, else `server__tool`.
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
        """The name that stays unique whatever other servers offer."""
        return f"{self.server}__{self.tool}"

    @property
    def repeatable(self) -> bool:
        """Whether calling it twice with the same arguments does what calling it once does."""
        return self.hints.read_only or self.hints.idempotent


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """How a call ended. `unknown`: it broke off and may have taken effect."""

    text: str
    failed: bool = False
    unknown: bool = False


class Tools(Protocol):
    """All tool servers together. A server that is away fails only the calls to its own tools."""

    async def catalogue(self) -> Sequence[ToolSpec]:
        """Return all known tools by name, once every server was tried. A server's tools outlast its absence."""
        ...

    async def call(self, tool: ToolSpec, arguments: Mapping[str, object], key: str) -> ToolOutcome:
        """Call a tool. Never raises for the tool's or its server's failure. `key` lets a server spot repeats.

        Cancelling it drops the call; the server is told.
        """
        ...
