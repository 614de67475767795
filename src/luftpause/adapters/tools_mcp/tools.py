"""All tool servers behind the tools port: their tools under names that a model can be offered."""

import asyncio
import itertools
import logging
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from mcp_types import Tool

from luftpause.adapters.tools_mcp.connection import ServerConnection
from luftpause.adapters.tools_mcp.results import failure
from luftpause.adapters.tools_mcp.transports import ToolServerSpec
from luftpause.core.runs.tools import ToolHints, ToolSpec, find
from luftpause.ports.tools import KEY_FIELD, TRACE_FIELD, ToolOutcome

_NAME_MAX: Final = 64
STARTING_S: Final = 10.0
"""So long after the start a spawn that names no tools waits for servers that were not tried yet, and no longer."""

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
logger = logging.getLogger("luftpause.tools")


class McpTools:
    """The configured tool servers. Construct inside a running loop, `start`, and `close` at the end."""

    def __init__(self, servers: Iterable[ToolServerSpec]) -> None:
        self._connections = {spec.name: ServerConnection(spec) for spec in servers}
        self._patient_until = 0.0

    def start(self) -> None:
        """Connect to every server in the background."""
        self._patient_until = asyncio.get_running_loop().time() + STARTING_S
        for connection in self._connections.values():
            connection.start()

    async def close(self) -> None:
        """Stop every server that was started and leave the others."""
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    async def catalogue(self, wanted: Sequence[str] | None = None) -> Sequence[ToolSpec]:
        """Return all known tools by name; see the port."""
        loop = asyncio.get_running_loop()
        until = None if wanted is not None else self._patient_until
        while True:
            known = name_tools((name, connection.tools) for name, connection in self._connections.items())
            untried = {name: each for name, each in self._connections.items() if not each.was_tried}
            if not untried or (wanted is not None and all(find(known, name) for name in wanted)):
                return known
            if until is not None and loop.time() >= until:
                logger.warning("tool_servers_not_waited_for", extra={"servers": sorted(untried)})
                return known
            await _first_tried(untried.values(), None if until is None else until - loop.time())

    async def call(
        self, tool: ToolSpec, arguments: Mapping[str, object], key: str, traceparent: str = ""
    ) -> ToolOutcome:
        """Call a tool; see the port."""
        connection = self._connections.get(tool.server)
        if connection is None:
            return failure(f"tool server {tool.server!r} is not configured any more")
        meta = {KEY_FIELD: key, **({TRACE_FIELD: traceparent} if traceparent else {})}
        return await connection.call(tool.tool, arguments, meta, repeatable=tool.repeatable)


async def _first_tried(connections: Iterable[ServerConnection], timeout_s: float | None) -> None:
    """Wait until one of these was tried, or the time is up."""
    waits = [asyncio.create_task(connection.tried()) for connection in connections]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def name_tools(listings: Iterable[tuple[str, Sequence[Tool]]]) -> tuple[ToolSpec, ...]:
    """Return the tools of all servers, sorted by the name that each is offered under.

    Models take letters, digits, `_` and `-` in names, at most 64; anything else becomes `_`. A tool goes by its bare
    name when that is its alone, else by its long one, with a number where that is taken too. The names follow from what
    is listed, not from the order that it is listed in.
    """
    every = [(server, tool) for server, tools in listings for tool in tools]
    owners = Counter(_fit(tool.name) for _, tool in every)
    alone = [(server, tool) for server, tool in every if owners[_fit(tool.name)] == 1]
    others = [(server, tool) for server, tool in every if owners[_fit(tool.name)] > 1]
    named = {_fit(tool.name): (server, tool) for server, tool in alone}
    for server, tool in sorted(others, key=lambda each: (each[0], each[1].name)):
        named[_free_name(_fit(f"{server}__{tool.name}"), named)] = (server, tool)
    return tuple(_spec(name, *named[name]) for name in sorted(named))


def _fit(name: str) -> str:
    return _UNFIT.sub("_", name)[:_NAME_MAX] or "_"


def _free_name(name: str, taken: Container[str]) -> str:
    numbered = (f"{name[: _NAME_MAX - len(suffix)]}{suffix}" for suffix in map("_{}".format, itertools.count(2)))
    return next(each for each in itertools.chain((name,), numbered) if each not in taken)


def _spec(name: str, server: str, tool: Tool) -> ToolSpec:
    hints = tool.annotations
    said = ToolHints()
    if hints is not None:
        said = ToolHints(
            read_only=bool(hints.read_only_hint),
            destructive=hints.destructive_hint is not False,
            says_destructive=hints.destructive_hint is True,
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
