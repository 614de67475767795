"""Whether an engine answers its health probe. Knows nothing of the process behind it."""

import asyncio
from typing import Final

from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError

PROBE_S_MAX: Final = 2.0
"""An answer that takes longer is none."""
_OK: Final = 200


async def answers(engines: Engines, endpoint: Endpoint, health: str) -> bool:
    """Return whether the engine answers its health path with a 200 in time."""
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
        return False
    return exchange.status == _OK
