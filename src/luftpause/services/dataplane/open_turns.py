"""The turns that are open here: their ids, their ends, and a sign of life for each while it lasts.

Every turn that is opened ends exactly once, with one report or, when the scheduler itself refused it, with none.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from luftpause.core.model.ids import PeerId, ToolCallId, TurnId
from luftpause.core.scheduling.events import (
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
)
from luftpause.ports.scheduler import SchedulerLink

CALLS_KEPT: Final = 20_000
"""So many of the last tool-call ids that clients were given here are known."""


class OpenTurns:
    """Opens and ends turns of one dataplane instance."""

    def __init__(self, link: SchedulerLink, *, peer: PeerId) -> None:
        self.peer = peer
        self._link = link
        self._opened = 0
        self._open: dict[TurnId, None] = {}
        self._returning: dict[TurnId, Callable[[], None]] = {}
        self._given: dict[ToolCallId, None] = {}
        link.attend(peer, self._recalled)

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
        self._opened += 1
        turn = TurnId(f"{self.peer}.{self._opened}")
        self._open[turn] = None
        return turn

    def tell(self, report: TurnReport) -> None:
        """Report something about an open turn that does not end it."""
        self._link.report(report)

    def may_return(self, turn: TurnId, take_back: Callable[[], None]) -> None:
        """Let a turn be recalled: then it is taken back by this, and ends with TurnReturned."""
        self._returning[turn] = take_back

    def returns(self, turn: TurnId) -> bool:
        """Say whether a turn may be recalled."""
        return turn in self._returning

    def stays(self, turn: TurnId) -> None:
        """Let a turn be recalled no more. Calling it again changes nothing."""
        self._returning.pop(turn, None)

    def end(self, turn: TurnId, report: TurnFinished | TurnFailed | TurnAbandoned | TurnReturned | None) -> None:
        """End a turn; None when the scheduler refused it and knows. Only the first end counts."""
        if turn in self._open:
            del self._open[turn]
            self._returning.pop(turn, None)
            if report is not None:
                if isinstance(report, TurnFinished) and report.tool_calls:
                    self._give(report.tool_calls)
                self._link.report(report)

    def gave(self, calls: Sequence[ToolCallId]) -> bool:
        """Say whether a client was given one of these ids here, lately: some clients make up their own."""
        return not self._given.keys().isdisjoint(calls)

    def _give(self, calls: Sequence[ToolCallId]) -> None:
        given = self._given
        for call in calls:
            given[call] = None
        while len(given) > CALLS_KEPT:
            del given[next(iter(given))]

    def _recalled(self, turn: TurnId) -> None:
        """Take a turn back, or say that it stays; nothing is owed for one that has ended."""
        take_back = self._returning.pop(turn, None)
        if take_back is not None:
            take_back()
        elif turn in self._open:
            self._link.report(TurnStays(turn=turn))

    async def renew(self, period_s: float) -> None:
        """Tell every `period_s` seconds which turns are still open, until cancelled."""
        while True:
            await asyncio.sleep(period_s)
            if self._open:
                self._link.report(TurnsRenewed(turns=tuple(self._open)))
