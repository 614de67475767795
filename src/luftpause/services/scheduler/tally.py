"""What the scheduler counts of its decisions, as plain arithmetic: one is counted for every event."""

from collections.abc import Sequence
from typing import Final

from luftpause.core.scheduling.actions import Action
from luftpause.telemetry.tallies import Tally

DECIDE_SECONDS_BUCKETS: Final[Sequence[float]] = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.1)


class DecisionTally:
    """What was counted so far.

    Attributes:
        seconds: decisions by how long they took.
        orders: the orders given, by kind.
        faults: events on which deciding failed.
    """

    def __init__(self) -> None:
        self.seconds = Tally(DECIDE_SECONDS_BUCKETS)
        self.orders: dict[type[Action], int] = {}
        self.faults = 0

    def decided(self, seconds: float, actions: Sequence[Action]) -> None:
        """Count one decision."""
        self.seconds.add(seconds)
        for action in actions:
            kind = type(action)
            self.orders[kind] = self.orders.get(kind, 0) + 1
