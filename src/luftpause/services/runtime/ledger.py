"""The state of all runs, and the rule that nothing enters it before it is durable.

Every tree has a clock that stands still while no runtime is up: it goes on from where its last record left it.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from luftpause.core.model.ids import ActiveMs, PrincipalId, RunId
from luftpause.core.runs.actions import Action
from luftpause.core.runs.advance import decide, without_conversation
from luftpause.core.runs.condensing import condense, forget
from luftpause.core.runs.events import Event, RunSpawned
from luftpause.core.runs.replay import Entry, History, clocks, recalled, replay, unfinished
from luftpause.core.runs.state import Run, State
from luftpause.ports.journal import Journal, JournalFailedError, StaleAppendError
from luftpause.services.runtime.metrics import RuntimeMetrics
from luftpause.services.runtime.orders import UnknownHandleError
from luftpause.services.runtime.run_spans import RunSpans
from luftpause.telemetry.pauses import ShortPauses, making_many_objects


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a batch of events: what is to be done now, and for each whether it changed anything."""

    actions: tuple[Action, ...]
    effective: tuple[bool, ...]


class Ledger:
    """Owns the state. Events of one run must be handed in one batch after another; different runs do not wait.

    Args:
        changed: told of every run that now stands differently, in the very step in which it does.
        spans: told of all that is taken in.
    """

    def __init__(
        self, journal: Journal, metrics: RuntimeMetrics, changed: Callable[[RunId], None], spans: RunSpans | None = None
    ) -> None:
        self._journal = journal
        self._metrics = metrics
        self._spans = spans or RunSpans()
        self._changed = changed
        self._pauses = ShortPauses()
        self._last_seq: dict[RunId, int] = {}
        self._clocks: dict[RunId, float] = {}
        self._epoch = 0
        self._order: dict[PrincipalId | None, dict[RunId, None]] = {None: {}}
        self.state = State()

    async def open(self) -> tuple[RunId, ...]:
        """Replay the journal and return the unfinished runs, parents first.

        Raises:
            JournalFailedError: it cannot be read.
        """
        with making_many_objects():
            return await self._open()

    async def _open(self) -> tuple[RunId, ...]:
        loaded = await self._journal.load()
        self._epoch = loaded.epoch
        self._last_seq = dict(loaded.last_seq)
        self.state = replay(loaded.histories)
        for history in loaded.histories:
            self._enter(history.run)
        now = _loop_ms()
        self._clocks = {tree: now - at for tree, at in clocks(self.state, loaded.histories).items()}
        for history in loaded.histories:
            if history.condensed is None:
                self._settle(history.run)
        return unfinished(self.state)

    async def keep(self, tree: RunId, run: RunId, events: Sequence[Event]) -> Kept:
        """Make events of a run durable, take them in, and return what is to be done.

        Raises:
            JournalFailedError: they are not kept.
            StaleAppendError: somebody else writes this run.
        """
        at = self.now(tree)
        known = self._last_seq.get(run, 0)
        entries = [Entry(event, at) for event in events]
        self._last_seq[run] = await self._journal.append(tree, run, known, self._epoch, entries)
        actions: list[Action] = []
        effective: list[bool] = []
        for entry in entries:
            before = self.state
            decision = decide(before, entry.event, entry.at)
            self.state = decision.state
            actions.extend(decision.actions)
            effective.append(decision.state is not before)
            self._metrics.count(entry.event)
            self._spans.happened(entry.event, before, self.state)
            self._pauses.decided(len(self.state.runs))
        if isinstance(events[0], RunSpawned):
            self._enter(run)
        self.state = without_conversation(self.state, self.state.runs[run])
        self._changed(run)
        self._settle(run)
        return Kept(tuple(actions), tuple(effective))

    async def recall(self, run: RunId) -> None:
        """Give a run its conversation back, so that it can go on.

        Raises:
            JournalFailedError: it cannot be read, or not whole.
            StaleAppendError: the run was forgotten meanwhile.
        """
        history = await self._journal.history(run)
        if history.damage:
            raise JournalFailedError(unreadable(history))
        if run not in self.state.runs:
            raise StaleAppendError(f"{run} is not kept any more")
        if not self.state.runs[run].messages:
            self.state = recalled(self.state, history)

    def find(self, principal: PrincipalId | None, handle: str) -> Run:
        """Return one of the principal's runs; without one, anybody's.

        Raises:
            UnknownHandleError: there is none of this name.
        """
        known = self.state.runs.get(RunId(handle))
        if known is None or principal not in (None, known.spawn.principal):
            raise UnknownHandleError(handle)
        return known

    def newest(
        self, principal: PrincipalId | None, limit: int, first: Iterable[RunId]
    ) -> tuple[tuple[RunId, ...], int]:
        """Return so many runs, of one principal or of all, newest first, and how many are left out.

        `first` go before all others, if they are the principal's.
        """
        mine = self._order.get(principal, {})
        candidates = itertools.chain((run for run in first if run in mine), reversed(mine))
        chosen: dict[RunId, None] = {}
        for run in candidates:
            if len(chosen) >= limit:
                break
            chosen[run] = None
        return tuple(chosen), len(mine) - len(chosen)

    def is_over(self, run: RunId) -> bool:
        """Whether a run that was known is over, perhaps so long that it is not known any more."""
        known = self.state.runs.get(run)
        return known is None or known.is_over

    def now(self, tree: RunId) -> ActiveMs:
        """Return what a tree's clock shows; a tree that was never asked about begins at 0."""
        now = _loop_ms()
        return ActiveMs(int(now - self._clocks.setdefault(tree, now)))

    def _enter(self, run: RunId) -> None:
        known = self.state.runs.get(run)
        if known is not None:
            self._order[None][run] = None
            self._order.setdefault(known.spawn.principal, {})[run] = None

    def _settle(self, run: RunId) -> None:
        """Let the journal put away a run that is over, and forget what it does not keep any more."""
        kept = condense(self.state, run)
        gone = () if kept is None else self._journal.settle(kept)
        for each in gone:
            self._last_seq.pop(each, None)
            self._clocks.pop(each, None)
            known = self.state.runs.get(each)
            if known is not None:
                self._order[None].pop(each, None)
                self._order[known.spawn.principal].pop(each, None)
        self.state = forget(self.state, gone)


def unreadable(history: History) -> str:
    """Return what is told of a run whose conversation is not whole."""
    return f"what was said in {history.run} cannot be read back: {history.damage}"


def _loop_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
