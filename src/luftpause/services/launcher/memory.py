"""Waiting for memory that an engine held to be free again. RAM ends with its process; an accelerator's comes later."""

import asyncio
import logging
from typing import Final

from luftpause.core.model.ids import DeviceId
from luftpause.ports.processes import MemoryMeter

_LOG = logging.getLogger("luftpause.launcher")
_CHECK_S: Final = 0.05
_SHARE: Final = 0.8
"""So much of what it took must be back: what else runs there moves the figure too."""


async def memory_back(meter: MemoryMeter, device: DeviceId, taken: int, *, before: int | None, wait_s: float) -> None:
    """Return once a device has the memory again that an engine took, or never will.

    Args:
        meter: what tells.
        device: where the engine was.
        taken: what it took, bytes.
        before: what was free there while it still ran, bytes; None where nobody could tell.
        wait_s: how long at most, since another program may take what was freed, seconds.
    """
    if before is None or not taken:
        return
    try:
        async with asyncio.timeout(wait_s):
            while True:
                free = await asyncio.to_thread(meter.free, device)
                if free is None or free >= before + _SHARE * taken:
                    return
                await asyncio.sleep(_CHECK_S)
    except TimeoutError:
        _LOG.warning("memory_not_back", extra={"device": device, "taken": taken})
