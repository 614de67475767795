"""The state of all runs, and the rule that nothing enters it before it is durable."""

import asyncio
from collections.abc import Sequence

from luftpause.core.model.ids import Instant, RunId
from luftpause.core.runs.actions import Action
from luftpause.core.runs.advance import decide
from luftpause.core.runs.events import Event
from luftpause.core.runs.replay import replay, unfinished
from luftpause.core.runs.state import State
from luftpause.ports.journal import Journal
from luftpause.services.runtime.metrics import RuntimeMetrics


class Ledger:
    """Owns the state. Events of one run must be handed in one batch after another; different runs do not wait."""

    def __init__(self, journal: Journal, metrics: RuntimeMetrics) -> None:
        self._journal = journal
        self._metrics = metrics
        self._last_seq: dict[RunId, int] = {}
        self._epoch = 0
        self.state = State()

    async def open(self) -> tuple[RunId, ...]:
        """Replay the journal and return the unfinished runs, parents first.

        Raises:
            JournalFailedError: it cannot be read.
        """
        loaded = await self._journal.load()
        self._epoch = loaded.epoch
        self._last_seq = dict(loaded.last_seq)
        self.state = replay(loaded.histories, self._now())
        return unfinished(self.state)

    async def keep(self, tree: RunId, run: RunId, events: Sequence[Event]) -> tuple[Action, ...]:
        """Make events of a run durable, take them in, and return what is to be done.

        Raises:
            JournalFailedError: they are not kept.
            StaleAppendError: somebody else writes this run.
        """
        known = self._last_seq.get(run, 0)
        self._last_seq[run] = await self._journal.append(tree, run, known, self._epoch, events)
        actions: list[Action] = []
        for event in events:
            decision = decide(self.state, event, self._now())
            self.state = decision.state
            actions.extend(decision.actions)
            self._metrics.count(event)
        return tuple(actions)

    def is_over(self, run: RunId) -> bool:
        """Whether the run is known and over."""
        known = self.state.runs.get(run)
        return known is not None and known.is_over

    @staticmethod
    def _now() -> Instant:
        return Instant(asyncio.get_running_loop().time())
