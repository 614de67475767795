"""Who has little in flight beside the others, and what those leave to it where it is at work.

A turn beside a full batch gets a fraction of its engine's pace, however soon it was sent. So whoever has no more than
a twelfth of all that is in flight is a guest. Where one of its turns runs, others begin up to half of the memory only,
and elsewhere instead. When it comes it begins up to what interactive runs may fill, also where a replica is closed for
somebody who is no guest. All together are left four times what guests have: the more guests, the less for each, and
nobody gains by calling itself a hundred names.

Tokens in flight count, not turns. Principals are compared; the callers of one only where that has half of everything.
Where many of them wait all have little, and whoever comes would pass those who wait: there a guest has at most half of
what an even share among these is.
Which class goes first is not changed by guests: each class has its own.
"""

from typing import Final

from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.lineup import Lineup
from luftpause.core.scheduling.standings import Payer, Standings
from luftpause.core.scheduling.working_set.state import Seat
from luftpause.core.scheduling.working_set.weights import Weights

LITTLE: Final = 12
"""A guest has no more than one part in so many of what is in flight."""

EVEN_SHARES: Final = 2
"""And no more than one part in so many for each of its likes that waits."""

BESIDE: Final = 4
"""Of a replica all together may have so many times what guests have."""


def has_little(standings: Standings, lineup: Lineup, payer: Payer, tokens: int, weights: Weights) -> bool:
    """Say whether a payer has little beside the others, with so many tokens more, although it may have no less."""
    principal, caller = payer
    of_all = standings.tokens + tokens
    of_principal = standings.tokens_of(principal) + tokens
    if 2 * of_principal < of_all:
        parts = max(LITTLE, EVEN_SHARES * lineup.principals.size)
        weight = weights.principals.get(principal, 1.0) if weights.principals else 1.0
        return parts * of_principal <= min(1.0, weight) * of_all
    of_payer = standings.tokens_of(payer) + tokens
    parts = max(LITTLE, EVEN_SHARES * lineup.callers_waiting(principal))
    weight = weights.callers.get(caller, 1.0) if weights.callers else 1.0
    return parts * of_payer <= min(1.0, weight) * of_principal


def left_to_others(seat: Seat, service_class: ServiceClass) -> int | None:
    """Return what a replica's guests of a class leave at least to all together; None where nobody makes way for them.

    Where only guests are, others begin as ever: a run that needs more than they would leave must begin some time.
    """
    tokens = seat.batch_guests if service_class is ServiceClass.BATCH else seat.guests
    return BESIDE * tokens if 0 < tokens < seat.charged else None


def with_guest(seat: Seat, service_class: ServiceClass, tokens: int) -> Seat:
    """Return a replica's seat with so many tokens more of guests; below zero: fewer."""
    if service_class is ServiceClass.BATCH:
        return seat._replace(batch_guests=seat.batch_guests + tokens)
    return seat._replace(guests=seat.guests + tokens)
