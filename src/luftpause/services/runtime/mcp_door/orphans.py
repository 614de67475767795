"""Runs whose only client left in the middle of a `run` call that stood alone: cancelled after a while.

Leaving such a request is how its client cancels it. Networks break too, so the run lives on for a grace in which
somebody may wait for it. A run with an idempotency key is never an orphan: its client can ask again.
"""

import asyncio
import logging

from luftpause.core.model.ids import PrincipalId, RunId
from luftpause.services.runtime.mcp_door.waiting import Waiting
from luftpause.services.runtime.orders import NotKeptError
from luftpause.services.runtime.service import RuntimeService

logger = logging.getLogger("luftpause.mcp")


class Orphans:
    """Watches over them. `close` it: what is not cancelled by then goes on."""

    def __init__(self, service: RuntimeService, waiting: Waiting, grace_s: float) -> None:
        self._service = service
        self._waiting = waiting
        self._grace_s = grace_s
        self._watches: set[asyncio.Task[None]] = set()

    def leave(self, principal: PrincipalId, run: RunId) -> None:
        """Say that the client of a run left."""
        watch = asyncio.create_task(self._watch(principal, run), name=f"orphan {run}")
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    def leave_when_spawned(self, principal: PrincipalId, spawning: "asyncio.Task[RunId]") -> None:
        """Say that the client left before its run had begun."""

        def spawned(done: "asyncio.Task[RunId]") -> None:
            if not done.cancelled() and done.exception() is None:
                self.leave(principal, done.result())

        spawning.add_done_callback(spawned)

    async def close(self) -> None:
        """Stop watching."""
        for watch in list(self._watches):
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    async def _watch(self, principal: PrincipalId, run: RunId) -> None:
        await asyncio.sleep(self._grace_s)
        if self._waiting.is_waited_for(run):
            return
        try:
            view = await self._service.cancel(principal, run)
        except NotKeptError as error:
            logger.warning("orphan_not_cancelled", extra={"run": run, "error": str(error)})
            return
        logger.info("orphan_cancelled", extra={"run": run, "status": view.status.value})
