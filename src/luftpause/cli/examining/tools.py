"""Whether each tool server starts or answers, and lists its tools. One of `command` is started, and ended again."""

import asyncio
from dataclasses import replace

from luftpause.adapters.tools_mcp.connection import ServerConnection
from luftpause.adapters.tools_mcp.transports import ToolServerSpec
from luftpause.assembly.declared import tool_server_specs
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import Subject

SAYS = Says("tools")
_SHOWN_MAX = 6


async def examined(subject: Subject) -> list[Finding]:
    """Return how they are."""
    specs = tool_server_specs(subject.config, subject.env)
    if not specs:
        return [SAYS.note("no [[tools]]: sub-agents have nothing to call")]
    return list(await asyncio.gather(*(_server(subject, spec) for spec in specs)))


async def _server(subject: Subject, spec: ToolServerSpec) -> Finding:
    # One attempt: the pause before the next one is longer than we stay.
    connection = ServerConnection(replace(spec, connect_timeout_s=subject.look_s, backoff_s=10 * subject.look_s))
    connection.start()
    try:
        await connection.tried()
        cause = connection.cause
        names = [tool.name for tool in connection.tools]
    finally:
        await connection.close()
    if cause:
        if spec.command and "in time" in cause:
            bounds = f"{subject.look_s:g} s; the MCP door gives it {spec.connect_timeout_s:g} s"
            return SAYS.warning(f"{spec.name}: {cause} ({bounds})", subject.command("doctor --patience 30"))
        return SAYS.error(f"{spec.name}: {cause}", _way(spec))
    if not names:
        return SAYS.warning(f"{spec.name} answers and lists no tool", _way(spec))
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return SAYS.ok(f"{spec.name} lists {', '.join(names[:_SHOWN_MAX])}{more}")


def _way(spec: ToolServerSpec) -> str:
    if spec.command:
        return f"run it by hand: {' '.join(spec.command)}; then correct `command` of [[tools]] {spec.name}"
    return f"start it, or correct `url` of [[tools]] {spec.name}: {spec.url}"
