"""The tools that sub-agents may call, wherever they live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from luftpause.core.runs.tools import ToolSpec

KEY_FIELD: Final = "luftpause/idempotencyKey"
"""Where a call's key stands in its `_meta` over MCP, for servers that know luftpause. Our own door is one."""

TRACE_FIELD: Final = "traceparent"
"""Where a call's W3C trace context stands in its `_meta` over MCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """How a call ended. `unknown`: it broke off and may have taken effect."""

    text: str
    failed: bool = False
    unknown: bool = False


class Tools(Protocol):
    """All tool servers together. A server that is away fails only the calls to its own tools."""

    async def catalogue(self, wanted: Sequence[str] | None = None) -> Sequence[ToolSpec]:
        """Return all known tools by name. A server's tools outlast its absence.

        Servers that were not tried yet are waited for: with `wanted`, until these names are known or every server was
        tried; without, only in the first seconds of all, and who is left out is logged.
        """
        ...

    async def call(
        self, tool: ToolSpec, arguments: Mapping[str, object], key: str, traceparent: str = ""
    ) -> ToolOutcome:
        """Call a tool, listed just now or long ago. Never raises for the tool's or its server's failure.

        A server that went away a moment ago is waited for. `key` lets a server spot repeats, `traceparent` is the
        W3C trace context that the call belongs to, empty for none. Cancelling it drops the call; the server is told.
        """
        ...
