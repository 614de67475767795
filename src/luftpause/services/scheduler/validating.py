"""Proving the state sound after every event: for finding faults, not for every day, since it looks at everything."""

import logging

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.events import Event
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import Decision, State

_log = logging.getLogger("luftpause.scheduler")


class Validator:
    """A witness that logs `state_unsound` for every decision that leads to an unsound state."""

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """See `Witness`."""
        if decision.state is before:
            return
        try:
            check(decision.state)
        except AssertionError as unsound:
            _log.error("state_unsound", extra={"event_kind": type(event).__name__, "now_s": now, "cause": str(unsound)})
