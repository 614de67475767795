"""How long an answer becomes: its scheduler is told when that is more than its turn is charged for."""

from typing import Final

from luftpause.core.model.charges import BYTES_MAX, Charge
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import AnswerGrew
from luftpause.services.dataplane.open_turns import OpenTurns

NEVER: Final = 2 * BYTES_MAX
"""No answer has as many bytes."""


class Growth:
    """One answer's, against what its turn was charged with."""

    __slots__ = ("_charge", "_offer", "_turns")

    def __init__(self, turns: OpenTurns, offer: TurnOffer, charge: Charge) -> None:
        self._turns = turns
        self._offer = offer
        self._charge = charge

    @property
    def spoken_of(self) -> int:
        """How long the answer is, in bytes as they are streamed, when that is to be told next."""
        return self._charge.reply_bytes or NEVER

    def grew(self, size: int) -> int:
        """Tell that it is so long, unless its turn is over, and return when to tell again."""
        offer = self._offer
        self._charge = self._charge.grown(size, offer.reply_max)
        if offer.turn in self._turns:
            self._turns.tell(AnswerGrew(turn=offer.turn, reply_bytes=size))
        return self.spoken_of
