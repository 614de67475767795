"""How many calls a tool server gets at once; the others wait in the order in which they came, up to a number."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

WAITING_MAX: Final = 1000


class NoRoomError(Exception):
    """So many calls wait already that another one is not taken."""


class Slots:
    """`limit` calls at once; 0 means as many as come."""

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit) if limit else None
        self._waiting = 0

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[float]:
        """Wait for a slot and keep it for the block; the value is how long that took, in seconds.

        Raises:
            NoRoomError: too many wait.
        """
        if self._free is None:
            yield 0.0
            return
        if self._free.locked() and self._waiting >= WAITING_MAX:
            raise NoRoomError(f"{self._waiting} calls wait for it already")
        clock = asyncio.get_running_loop().time
        began = clock()
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield clock() - began
        finally:
            self._free.release()
