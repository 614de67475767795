"""The last minutes of all runs and models: a bounded ring of their phase changes.

Filled by watching the scheduler decide; read by the page, by `GET /timeline` and by the trace export.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from luftpause.core.model.ids import Instant, RunId
from luftpause.core.scheduling.events import Event
from luftpause.core.scheduling.state import Decision, State
from luftpause.services.scheduler.phases import Change, Lane, Phases, Spent
from luftpause.services.scheduler.witness import Witness

CHANGES_MAX: Final = 20_000
AGE_S: Final = 900.0
"""Older changes are not told."""
DESCENDANTS_MAX: Final = 1000
"""So many runs are added up below one; a family that is larger has cost at least what is told."""


class Timeline(Witness):
    """The ring.

    Args:
        changes_max: so many changes are kept, the latest ones.
        age_s: so long at most.
    """

    def __init__(self, *, changes_max: int = CHANGES_MAX, age_s: float = AGE_S) -> None:
        self._age_s = age_s
        self._ring: deque[Change] = deque(maxlen=changes_max)
        self._phases = Phases(self._ring.append)

    @property
    def told(self) -> int:
        """How many changes there ever were."""
        return self._phases.told

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """See Witness."""
        self._phases.decided(before, event, now, decision)

    def changes(self, after: int = 0) -> list[Change]:
        """Return the changes that were told after so many others, as far as they are kept, in order of time."""
        ring = self._ring
        while ring and ring[-1].at - ring[0].at > self._age_s:
            ring.popleft()
        newer = list(islice(reversed(ring), max(0, min(len(ring), self.told - after))))
        newer.reverse()
        return newer

    def followed(self) -> Sequence[Lane]:
        """Return the lanes that are followed now: all but what was forgotten."""
        return (*self._phases.models.values(), *self._phases.runs.values())

    def spent(self, run: RunId) -> Spent:
        """Return what a run has cost, as long as it is followed."""
        lane = self._phases.runs.get(run)
        return Spent() if lane is None else lane.spent

    def spent_below(self, state: State, run: RunId) -> Spent:
        """Return what a run and all below it have cost, as long as they are followed."""
        children, seen, waiting = state.children, {run}, [run]
        while waiting and len(seen) <= DESCENDANTS_MAX:
            for child, _ in children.get(waiting.pop(), ()):
                if child not in seen:
                    seen.add(child)
                    if child in children:
                        waiting.append(child)
        spent = [self.spent(each) for each in seen]
        return Spent(*map(sum, zip(*spent, strict=True)))
