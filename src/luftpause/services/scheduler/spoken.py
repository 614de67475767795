"""Finding out which wire formats an engine speaks beside Chat Completions: it is sent an empty object in each.

An engine that speaks one says what is missing in it; one that does not knows no such path. Nothing is generated.
"""

import asyncio
from typing import Final

from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError

PATHS: Final = {"messages": b"/v1/messages", "responses": b"/v1/responses"}
"""The wire formats that engines are known to speak, and where."""

_NOTHING_THERE: Final = (404, 405, 501)
_WANTS_A_KEY: Final = (401, 403)
_BUSY: Final = (429, 503)


async def spoken_at(engines: Engines, endpoint: Endpoint, timeout_s: float) -> tuple[str, ...] | None:
    """Return the wire formats that are spoken at an endpoint; None when it did not say of one of them in time."""
    asked = await asyncio.gather(*(_speaks(engines, endpoint, path, timeout_s) for path in PATHS.values()))
    if None in asked:
        return None
    return tuple(name for name, speaks in zip(PATHS, asked, strict=True) if speaks)


async def _speaks(engines: Engines, endpoint: Endpoint, path: bytes, timeout_s: float) -> bool | None:
    headers = ((b"content-type", b"application/json"),)
    request = EngineRequest(method=b"POST", path=path, headers=headers, body=b"{}")
    try:
        async with asyncio.timeout(timeout_s):
            exchange = await engines.send(endpoint, request)
    except (TimeoutError, EngineUnreachableError, EngineBrokeError):
        return None
    status = exchange.status
    exchange.close()
    return None if status in _BUSY else status not in (*_NOTHING_THERE, *_WANTS_A_KEY)
