"""How a tool server's word that its tools have changed reaches us, in both eras of the protocol."""

import asyncio
import logging

from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PAUSE_S = 1.0
"""Between two looks at what has changed, and before a subscription that ended is made again; that one doubles."""

_PAUSE_MAX_S = 60.0
logger = logging.getLogger("luftpause.tools")


class Changes:
    """Set when the tools have changed. `heard` takes what comes by itself, `subscribe` asks for it where that is so."""

    def __init__(self) -> None:
        self.any = asyncio.Event()

    async def heard(self, message: IncomingMessage) -> None:
        """Take a message of the server."""
        if isinstance(message, ToolListChangedNotification):
            self.any.set()

    async def subscribe(self, client: Client, server: str) -> None:
        """Listen for changes as long as the connection lasts; return where the server does not tell of any."""
        capabilities = client.server_capabilities
        tells = capabilities.tools is not None and bool(capabilities.tools.list_changed)
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not tells:
            return
        pause_s = PAUSE_S
        while True:
            try:
                async with client.listen(tools_list_changed=True) as subscription:
                    pause_s = PAUSE_S
                    async for _ in subscription:
                        self.any.set()
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                logger.debug("tool_changes_unheard", extra={"server": server, "error": str(error)})
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _PAUSE_MAX_S)
            # Whatever changed meanwhile was told to nobody.
            self.any.set()


async def first_of(*events: asyncio.Event) -> None:
    """Return once any of these is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
