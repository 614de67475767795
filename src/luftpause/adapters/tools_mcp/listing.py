"""A tool server's listing, made fit for the SDK: to it one odd tool spoils the listing, and so the whole server.

Output schemas are taken away. The SDK would judge every answer by them, with no bound on how long that takes; to a
model the answer is a text in any case.
"""

import logging
from typing import Final

from mcp_types import JSONRPCResponse
from mcp_types.methods import validate_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

_DIALECT: Final = "$schema"
logger = logging.getLogger("luftpause.tools")


def tidy(message: object, server: str) -> None:
    """Take the tools that are none out of a message, if it is a listing. What is left out is logged."""
    if not isinstance(message, JSONRPCResponse) or not isinstance(message.result.get("tools"), list):
        return
    message.result["tools"] = [plain for tool in message.result["tools"] if (plain := _plain(tool, server)) is not None]


def _plain(tool: object, server: str) -> dict[str, object] | None:
    """Return a tool as the SDK takes it, mended where that is plain; None when it is none."""
    if not isinstance(tool, dict):
        logger.warning("tool_left_out", extra={"server": server, "error": "it is no object"})
        return None
    plain: dict[str, object] = {name: value for name, value in tool.items() if name != "outputSchema"}
    schema = plain.get("inputSchema")
    if isinstance(schema, dict):
        told = {name: value for name, value in schema.items() if name != _DIALECT or isinstance(value, str)}
        plain["inputSchema"] = told if "type" in told else {"type": "object", **told}
    try:
        validate_server_result("tools/list", HANDSHAKE_PROTOCOL_VERSIONS[-1], {"tools": [plain]})
    except (ValueError, RecursionError) as error:
        named = str(tool.get("name"))[:100]
        logger.warning("tool_left_out", extra={"server": server, "tool": named, "error": str(error)[:300]})
        return None
    return plain
