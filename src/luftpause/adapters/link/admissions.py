"""The turns that a client of the link has offered and not seen end: who waits for what.

It holds the futures only; what is known about the turns themselves is in the ledger.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from luftpause.core.model.ids import RunId, TurnId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.replicas import Placement
from luftpause.ports.scheduler import TurnRefusedError


@dataclass(slots=True)
class Admission:
    """One turn.

    Attributes:
        accepted: gives its run, and that run's parent if it is known.
        holders: counts the callers that wait for it or hold its ticket.
    """

    accepted: asyncio.Future[tuple[RunId, RunId | None]]
    placement: asyncio.Future[Placement]
    holders: int = 0


class Admissions:
    """Open admissions by turn, in the order in which they were offered."""

    def __init__(self) -> None:
        self._open: dict[TurnId, Admission] = {}

    def get(self, turn: TurnId) -> Admission | None:
        """The open admission of a turn."""
        return self._open.get(turn)

    def open(self, turn: TurnId) -> Admission:
        """Begin a turn's admission."""
        loop = asyncio.get_running_loop()
        admission = Admission(loop.create_future(), loop.create_future())
        self._open[turn] = admission
        return admission

    def turns(self) -> Sequence[TurnId]:
        """Every open turn, oldest first."""
        return tuple(self._open)

    def unaccepted(self) -> Sequence[TurnId]:
        """Every turn whose run is not known yet, oldest first."""
        return [turn for turn, admission in self._open.items() if not admission.accepted.done()]

    def accept(self, turn: TurnId, run: RunId, parent: RunId | None = None) -> None:
        """The scheduler accepted the turn; a second time changes nothing."""
        admission = self._open.get(turn)
        if admission is not None and not admission.accepted.done():
            admission.accepted.set_result((run, parent))

    def place(self, turn: TurnId, placement: Placement) -> None:
        """The turn has its place. It stays open until it ends."""
        admission = self._open.get(turn)
        if admission is not None and not admission.placement.done():
            admission.placement.set_result(placement)

    def refuse(self, turn: TurnId, refusal: Refusal) -> None:
        """The turn is turned away: whoever waits for it is told."""
        self.fail(turn, TurnRefusedError(refusal))

    def fail(self, turn: TurnId, error: Exception) -> None:
        """The turn is over before it had a place: whoever waits for it gets the error."""
        admission = self._open.pop(turn, None)
        if admission is None:
            return
        for future in (admission.accepted, admission.placement):
            if not future.done():
                future.set_exception(error)
                future.exception()  # marks it as seen: that nobody waits any more is no fault worth a log line

    def end(self, turn: TurnId) -> None:
        """The turn is over as its client sees it. A placement that somebody still waits for is cancelled."""
        admission = self._open.get(turn)
        if admission is not None and not admission.accepted.done():
            self.refuse(turn, Refusal(reason=RefusalReason.EXPIRED, message="the turn was withdrawn"))
        elif admission is not None:
            del self._open[turn]
            admission.placement.cancel()
