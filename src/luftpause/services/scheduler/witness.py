"""Who sees every decision of the scheduler."""

from typing import Protocol

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.events import Event
from luftpause.core.scheduling.state import Decision, State


class Witness(Protocol):
    """Who sees every decision. Must return at once."""

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """An event was taken in."""
        ...
