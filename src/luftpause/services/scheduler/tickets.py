"""The turns that somebody waits for: each ticket is settled once, by a placement, a refusal or its turn's end."""

from collections.abc import Callable

from luftpause.core.model.ids import RunId, TurnId
from luftpause.core.model.refusals import Refusal
from luftpause.core.model.replicas import Placement
from luftpause.ports.scheduler import Ticket, TurnRefusedError


class Tickets:
    """Open tickets by turn. Settling one that nobody holds any more is harmless."""

    def __init__(self) -> None:
        self._open: dict[TurnId, Ticket] = {}

    def waiting(self, turn: TurnId) -> Ticket | None:
        """Return the turn's ticket while somebody waits with it."""
        ticket = self._open.get(turn)
        return None if ticket is None or ticket.is_settled else ticket

    def write(self, turn: TurnId, run: RunId, parent: RunId | None) -> Ticket:
        """Open a ticket."""
        ticket = self._open[turn] = Ticket(run, parent=parent)
        return ticket

    def place(self, turn: TurnId, placement: Placement) -> None:
        """Settle a ticket with a placement."""
        ticket = self._open.pop(turn, None)
        if ticket is not None and not ticket.is_settled:
            ticket.place(placement)

    def refuse(self, turn: TurnId, refusal: Refusal) -> None:
        """Settle a ticket with a refusal."""
        ticket = self._open.pop(turn, None)
        if ticket is not None and not ticket.is_settled:
            ticket.placement.set_exception(TurnRefusedError(refusal))
            ticket.placement.exception()  # Its holder may have left: asyncio need not complain that nobody looked.

    def refuse_all(self, refusal: Refusal) -> None:
        """Settle every ticket with the same refusal."""
        for turn in tuple(self._open):
            self.refuse(turn, refusal)

    def drop(self, turn: TurnId) -> None:
        """Cancel the ticket of a turn that is over without an answer."""
        ticket = self._open.pop(turn, None)
        if ticket is not None:
            ticket.placement.cancel()

    def drop_unless(self, is_held: Callable[[TurnId], bool]) -> None:
        """Cancel the tickets of all turns that are held no more."""
        for turn in [turn for turn in self._open if not is_held(turn)]:
            self.drop(turn)
