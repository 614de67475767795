"""Tells the scheduler of runs that are over: a few at a time, for a thousand may end at once and turns go first.

Nothing hangs on it: a run that the scheduler never hears of again it forgets by itself.
"""

import asyncio
import logging
from collections import deque
from typing import Final

from luftpause.core.runs.actions import ReportEnd
from luftpause.ports.turns import Turns

AT_ONCE_MAX: Final = 8
WAITING_MAX: Final = 10_000
GRACE_S: Final = 2.0
"""How long reports may take once the runtime closes."""

logger = logging.getLogger("luftpause.runtime")


class EndReports:
    """Reports ends in the background, in the order they came."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._waiting: deque[ReportEnd] = deque()
        self._at_work: set[asyncio.Task[None]] = set()

    def add(self, ended: ReportEnd) -> None:
        """Report this end soon. Of too many that wait the oldest is dropped."""
        self._waiting.append(ended)
        if len(self._waiting) > WAITING_MAX:
            dropped = self._waiting.popleft()
            logger.warning("run_end_not_reported", extra={"run": dropped.run, "error": "too many reports wait"})
        if len(self._at_work) < AT_ONCE_MAX:
            work = asyncio.create_task(self._work(), name="reports of ended runs")
            self._at_work.add(work)
            work.add_done_callback(self._at_work.discard)

    async def close(self) -> None:
        """Report what waits as far as that goes in GRACE_S, then leave it."""
        if self._at_work:
            await asyncio.wait(self._at_work, timeout=GRACE_S)
        for work in self._at_work:
            work.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            ended = self._waiting.popleft()
            await self._turns.end_run(ended.principal, ended.run)
