"""Ages, as peers tell them, as instants of our own."""

from typing import Final

from luftpause.core.model.ids import Instant

AGE_S_MAX: Final = 1e9
"""Nothing is older, whatever a peer says: an instant before all time would have no deadline."""


def age_in(told_s: float) -> float:
    """Return an age, seconds; what is negative or no number is none."""
    return min(max(0.0, told_s), AGE_S_MAX)


def instant_before(now: Instant, told_s: float) -> Instant:
    """Return when something of that age happened."""
    return Instant(now - age_in(told_s))
