"""The turns that are open here: their ids, their ends, and a sign of life for each while it lasts.

Every turn that is opened ends exactly once, with one report or, when the scheduler itself refused it, with none.
"""

import asyncio
import itertools
from collections.abc import Sequence

from luftpause.core.model.ids import PeerId, TurnId
from luftpause.core.scheduling.events import TurnAbandoned, TurnFailed, TurnFinished, TurnReport, TurnsRenewed
from luftpause.ports.scheduler import SchedulerLink


class OpenTurns:
    """Opens and ends turns of one dataplane instance."""

    def __init__(self, link: SchedulerLink, *, peer: PeerId) -> None:
        self.peer = peer
        self._link = link
        self._counter = itertools.count(1)
        self._open: dict[TurnId, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, turn: TurnId) -> bool:
        return turn in self._open

    @property
    def turns(self) -> Sequence[TurnId]:
        """All open turns, oldest first."""
        return tuple(self._open)

    def open(self) -> TurnId:
        """Mint the id of a new turn."""
        turn = TurnId(f"{self.peer}.{next(self._counter)}")
        self._open[turn] = None
        return turn

    def tell(self, report: TurnReport) -> None:
        """Report something about an open turn that does not end it."""
        self._link.report(report)

    def end(self, turn: TurnId, report: TurnFinished | TurnFailed | TurnAbandoned | None) -> None:
        """End a turn; None when the scheduler refused it and knows. Only the first end counts."""
        if turn in self._open:
            del self._open[turn]
            if report is not None:
                self._link.report(report)

    async def renew(self, period_s: float) -> None:
        """Tell every `period_s` seconds which turns are still open, until cancelled."""
        while True:
            await asyncio.sleep(period_s)
            if self._open:
                self._link.report(TurnsRenewed(turns=tuple(self._open)))
