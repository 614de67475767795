"""All tool servers behind the tools port: their tools under names that a model can be offered."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mcp_types import Tool

from luftpause.adapters.tools_mcp.connection import ServerConnection
from luftpause.adapters.tools_mcp.transports import ToolServerSpec
from luftpause.ports.tools import ToolHints, ToolOutcome, ToolSpec

_NAME_MAX: Final = 64
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")


class McpTools:
    """The configured tool servers. Construct inside a running loop, `start`, and `close` at the end."""

    def __init__(self, servers: Iterable[ToolServerSpec]) -> None:
        self._connections = {spec.name: ServerConnection(spec) for spec in servers}

    def start(self) -> None:
        """Connect to every server in the background."""
        for connection in self._connections.values():
            connection.start()

    async def close(self) -> None:
        """Stop every server that was started and leave the others."""
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    async def catalogue(self) -> Sequence[ToolSpec]:
        """Return all known tools by name; see the port."""
        for connection in self._connections.values():
            await connection.tried()
        return name_tools((name, connection.tools) for name, connection in self._connections.items())

    async def call(self, tool: ToolSpec, arguments: Mapping[str, object], key: str) -> ToolOutcome:
        """Call a tool; see the port."""
        connection = self._connections[tool.server]
        return await connection.call(tool.tool, arguments, key, repeatable=tool.repeatable)


def name_tools(listings: Iterable[tuple[str, Sequence[Tool]]]) -> tuple[ToolSpec, ...]:
    """Return the tools of all servers, sorted by the name that each is offered under.

    Models take letters, digits, `_` and `-` in names, at most 64; anything else becomes `_`.
    """
    every = [(server, tool) for server, tools in listings for tool in tools]
    owners = Counter(_fit(tool.name) for _, tool in every)
    named: dict[str, ToolSpec] = {}
    for server, tool in every:
        bare = _fit(tool.name)
        name = bare if owners[bare] == 1 else _fit(f"{server}__{tool.name}")
        named.setdefault(name, _spec(name, server, tool))
    return tuple(named[name] for name in sorted(named))


def _fit(name: str) -> str:
    return _UNFIT.sub("_", name)[:_NAME_MAX]


def _spec(name: str, server: str, tool: Tool) -> ToolSpec:
    hints = tool.annotations
    said = ToolHints()
    if hints is not None:
        said = ToolHints(
            read_only=bool(hints.read_only_hint),
            destructive=hints.destructive_hint is not False,
            idempotent=bool(hints.idempotent_hint),
            open_world=hints.open_world_hint is not False,
        )
    return ToolSpec(
        name=name,
        server=server,
        tool=tool.name,
        description=tool.description or tool.title or "",
        schema=tool.input_schema,
        hints=said,
    )
