"""Waiting for runs to change: any number of waiters, none of which owns a run."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from luftpause.core.model.ids import RunId


class Waits:
    """Who waits for which run."""

    def __init__(self) -> None:
        self._bells: dict[RunId, set[asyncio.Event]] = {}

    def ring(self, run: RunId) -> None:
        """Wake everybody who waits for this run."""
        for bell in self._bells.get(run, ()):
            bell.set()

    def ring_all(self) -> None:
        """Wake everybody."""
        for run in self._bells:
            self.ring(run)

    @contextmanager
    def listening(self, runs: Sequence[RunId]) -> Iterator[asyncio.Event]:
        """Give a bell that rings whenever one of the runs changes."""
        bell = asyncio.Event()
        for run in runs:
            self._bells.setdefault(run, set()).add(bell)
        try:
            yield bell
        finally:
            for run in runs:
                bells = self._bells.get(run)
                if bells is not None:
                    bells.discard(bell)
                    if not bells:
                        del self._bells[run]

    async def until(self, runs: Sequence[RunId], satisfied: Callable[[], bool], timeout_s: float) -> bool:
        """Return True once `satisfied`, looked at whenever one of the runs changed; False when the time is up."""
        with self.listening(runs) as bell:
            try:
                async with asyncio.timeout(timeout_s):
                    while not satisfied():
                        bell.clear()
                        await bell.wait()
                return True
            except TimeoutError:
                return satisfied()
