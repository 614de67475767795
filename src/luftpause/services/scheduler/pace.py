"""How fast held turns go out, as seen lately: the base for a guess at how long one that waits has to wait still."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from luftpause.core.model.ids import Instant
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.events import Event
from luftpause.core.scheduling.reasons import ModelLoading
from luftpause.core.scheduling.state import Decision, State
from luftpause.core.scheduling.view import HeldView
from luftpause.services.scheduler.witness import Witness

LOOKED_BACK_S: Final = 60.0
GRANTS_MAX: Final = 4096
"""So many placements of held turns are remembered; more within LOOKED_BACK_S only shorten what is looked back on."""


class Pace(Witness):
    """Remembers when turns that had been held were placed."""

    def __init__(self) -> None:
        self._grants: deque[Instant] = deque(maxlen=GRANTS_MAX)

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """See `Witness`."""
        for action in decision.actions:
            if isinstance(action, PlaceTurn) and action.held_s > 0:
                self._grants.append(now)

    def expected_s(self, rows: Sequence[HeldView], now: Instant) -> list[float | None]:
        """Return for each row how long the first of its turns has to wait still, about; None where nothing tells.

        Rows come in the order in which they go out: before a row's first turn go those of the rows before it in its
        class, one of each, and all interactive turns before any batch. While a model is loaded its own estimate counts.
        """
        gap_s = self._gap_s(now)
        interactive = sum(row.count for row in rows if row.service_class is ServiceClass.INTERACTIVE)
        places = {ServiceClass.INTERACTIVE: 0, ServiceClass.BATCH: interactive}
        expected: list[float | None] = []
        for row in rows:
            places[row.service_class] += 1
            if isinstance(row.reason, ModelLoading):
                expected.append(max(0.0, row.reason.eta_s))
            else:
                expected.append(None if gap_s is None else places[row.service_class] * gap_s)
        return expected

    def _gap_s(self, now: Instant) -> float | None:
        """Return the mean time between two placements lately; None when there were not two."""
        recent = [granted for granted in tuple(self._grants) if now - granted <= LOOKED_BACK_S]
        return None if len(recent) <= 1 else (now - recent[0]) / len(recent)
