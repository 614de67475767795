"""Whether an engine answers its health probe. Knows nothing of the process behind it."""

import asyncio
from typing import Final

from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError

PROBE_S_MAX: Final = 2.0
"""An answer that takes longer is none."""
OK: Final = 200


async def answers(engines: Engines, endpoint: Endpoint, health: str) -> bool:
    """Return whether the engine answers its health path with a 200 in time."""
    return await status_of(engines, endpoint, health) == OK


async def status_of(engines: Engines, endpoint: Endpoint, health: str) -> int:
    """Return with which status the engine answers its health path in time; 0: it does not."""
    request = EngineRequest(method=b"GET", path=health.encode(), headers=(), body=b"")
    try:
        async with asyncio.timeout(PROBE_S_MAX):
            exchange = await engines.send(endpoint, request)
            try:
                while await exchange.read():
                    continue
            finally:
                exchange.close()
    except (EngineUnreachableError, EngineBrokeError, TimeoutError):
        return 0
    return exchange.status
