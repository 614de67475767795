"""A run's parked KV is read back into its slot before its turn is sent. If that fails, the prompt is computed again."""

import asyncio
import logging
import time
from typing import Final

import msgspec

from luftpause.core.model.ids import TurnId
from luftpause.core.model.replicas import Placement
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError

RESTORE_S_MAX: Final = 20.0
"""Longer is not waited: the engine is asked for the turn itself then, and does both in its own order."""
_ANSWER_BYTES_MAX: Final = 64 * 1024
_JSON: Final = ((b"content-type", b"application/json"),)
_LOGGER: Final = logging.getLogger("luftpause.dataplane")


async def restore(engines: Engines, placement: Placement, turn: TurnId) -> float | None:
    """Have an engine read a placement's file into its slot; return how long that took, seconds; None: it failed."""
    path = f"/slots/{placement.slot}?action=restore".encode()
    body = msgspec.json.encode({"filename": placement.restore})
    request = EngineRequest(method=b"POST", path=path, headers=_JSON, body=body)
    began, why = time.monotonic(), ""
    try:
        async with asyncio.timeout(RESTORE_S_MAX):
            exchange = await engines.send(placement.endpoint, request)
            try:
                answer = b""
                while len(answer) < _ANSWER_BYTES_MAX and (piece := await exchange.read()):
                    answer += piece
            finally:
                exchange.close()
        if exchange.status == 200:
            return time.monotonic() - began
        why = f"status {exchange.status}: {answer[:200].decode('utf-8', 'replace')}"
    except TimeoutError:
        why = f"it took longer than {RESTORE_S_MAX:g} s"
    except (EngineUnreachableError, EngineBrokeError) as error:
        why = str(error)
    _LOGGER.warning("kv_not_restored", extra={"turn": turn, "replica": placement.replica, "why": why})
    return None
