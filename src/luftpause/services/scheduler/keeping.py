"""What must outlive the scheduler is written down soon after it changed, by a thread, and never more often than needed.

States never change, so a thread may read one while the loop goes on. Nothing is written while nothing changes.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from luftpause.core.model.ids import Instant, PeerId
from luftpause.core.scheduling.events import Event, MemoryRestored
from luftpause.core.scheduling.memory import to_remember
from luftpause.core.scheduling.state import Decision, State
from luftpause.services.scheduler.witness import Witness

LEARNED_EVERY_S: Final = 10.0
"""What was learned is written at most this often: a few lost returns teach themselves again."""
PEERS_WITHIN_S: Final = 0.05
"""Who is connected is written within this: only a peer that is in the list is waited for."""

_log = logging.getLogger("luftpause.scheduler")


class Store(Protocol):
    """Where it is kept. Called from threads, one call at a time."""

    def write(self, peers: Sequence[PeerId], learned: MemoryRestored) -> None:
        """Replace what was kept before.

        Raises:
            OSError: it cannot be kept.
        """
        ...


class Keeper(Witness):
    """A witness of decisions, and who is told of the link's peers. All calls belong on one event loop.

    Args:
        store: where to write.
        known: the peers of the scheduler before this one.
    """

    def __init__(self, store: Store, known: Sequence[PeerId] = ()) -> None:
        self.known: Sequence[PeerId] = tuple(known)
        self._store = store
        self._seen: State | None = None
        self._seen_at = Instant(0.0)
        self._peers = tuple(known)
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._again = False
        self._failed = False
        self._closing = False

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """See `Witness`."""
        state = decision.state
        self._seen, self._seen_at = state, now
        if self._timer is None and (
            state.tools.histories is not before.tools.histories or state.replicas is not before.replicas
        ):
            self._write_in(LEARNED_EVERY_S)

    def peers_changed(self, peers: Sequence[PeerId]) -> None:
        """Note who is connected now, or was a moment ago."""
        self._peers = tuple(peers)
        self._write_in(PEERS_WITHIN_S)

    async def close(self) -> None:
        """Write once more, and wait until that is done."""
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        await self._write()

    def _write_in(self, seconds: float) -> None:
        if self._closing:
            return
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self._writing is not None:
            self._again = True  # a slow disk is not written to twice at once
            return
        self._writing = asyncio.get_running_loop().create_task(self._write(), name="scheduler memory")
        self._writing.add_done_callback(self._written)

    def _written(self, _: asyncio.Task[None]) -> None:
        self._writing = None
        if self._again:
            self._again = False
            self._write_in(PEERS_WITHIN_S)

    async def _write(self) -> None:
        try:
            await asyncio.to_thread(_keep, self._store, self._peers, self._seen, self._seen_at)
        except OSError as error:
            if not self._failed:  # once is enough: it will not get better by itself
                self._failed = True
                _log.warning("memory_not_kept", extra={"cause": str(error)})


def _keep(store: Store, peers: Sequence[PeerId], seen: State | None, at: Instant) -> None:
    store.write(peers, MemoryRestored() if seen is None else to_remember(seen, at))
