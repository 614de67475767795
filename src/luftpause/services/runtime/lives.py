"""All runs that are not over: an actor for each, the timers of their budgets, and what becomes of a run that breaks.

Whoever waits for a run never owns it: runs belong here, so a client that leaves changes nothing.
"""

import asyncio
import logging
from collections.abc import Iterable

from luftpause.core.model.ids import RunId
from luftpause.core.runs.budgets import next_deadline
from luftpause.core.runs.events import Event, RunFailed, RunRecovered
from luftpause.core.runs.go_on import overdue_endings
from luftpause.ports.journal import JournalFailedError, StaleAppendError
from luftpause.ports.tools import Tools
from luftpause.ports.turns import Turns
from luftpause.services.runtime.actor import SHUTTING_DOWN, RunActor, Surroundings
from luftpause.services.runtime.end_reports import EndReports
from luftpause.services.runtime.ledger import Ledger
from luftpause.services.runtime.orders import NotKeptError
from luftpause.services.runtime.run_spans import RunSpans
from luftpause.services.runtime.waits import Waits

logger = logging.getLogger("luftpause.runtime")


class Lives:
    """Owns the actors. `failure` says why nothing is kept any more, empty while all is well."""

    def __init__(self, ledger: Ledger, turns: Turns, tools: Tools, waits: Waits, spans: RunSpans | None = None) -> None:
        self._ledger = ledger
        self._waits = waits
        self._reports = EndReports(turns)
        self._around = Surroundings(
            ledger=ledger,
            turns=turns,
            tools=tools,
            spans=spans or RunSpans(),
            deliver=self.deliver,
            report_end=self._reports.add,
            began=self._watch_time,
            left=self._left,
        )
        self._actors: dict[RunId, RunActor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[RunId, asyncio.TimerHandle] = {}
        self.failure = ""

    @property
    def running(self) -> tuple[RunId, ...]:
        """The runs that live here, those of which nothing is on record yet included, in the order they came."""
        return tuple(self._actors)

    def take_up(self, unfinished: Iterable[RunId]) -> None:
        """Let runs go on that an earlier runtime left unfinished."""
        for run in unfinished:
            self._enliven(run, self._ledger.state.runs[run].tree).put(RunRecovered(run=run))
        for tree in list(self._ledger.state.trees):
            self._watch_time(tree)

    async def close(self) -> None:
        """Stop. Unfinished runs stay unfinished and go on at the next start."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        lives = list(self._tasks)
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        await self._reports.close()

    def deliver(self, event: Event) -> None:
        """Hand an event to its run, if that lives; nobody waits for it."""
        actor = self._actors.get(event.run)
        if actor is not None:
            actor.put(event)

    async def tell(self, tree: RunId, event: Event) -> bool:
        """Hand an event to its run, which is brought to life for it, and return once it is durable.

        It is recorded whatever becomes of the caller.

        Returns:
            Whether it changed anything.

        Raises:
            NotKeptError: it is not on record.
        """
        actor = self._actors.get(event.run) or self._enliven(event.run, tree)
        try:
            return await actor.ask(event)
        except (JournalFailedError, StaleAppendError) as error:
            raise NotKeptError(str(error)) from error

    def _enliven(self, run: RunId, tree: RunId) -> RunActor:
        actor = RunActor(run, tree, self._around)
        self._actors[run] = actor
        life = asyncio.create_task(self._supervise(actor), name=f"life of {run}")
        self._tasks.add(life)
        life.add_done_callback(self._tasks.discard)
        return actor

    def _left(self, actor: RunActor) -> None:
        if self._actors.get(actor.run) is actor:
            del self._actors[actor.run]

    async def _supervise(self, actor: RunActor) -> None:
        """Let a run live; whatever stops it stops it alone."""
        run = actor.run
        stopped: Exception = JournalFailedError(SHUTTING_DOWN)
        try:
            await actor.live()
        except (JournalFailedError, StaleAppendError) as error:
            stopped = error
            if isinstance(error, JournalFailedError):
                self.failure = str(error)
                self._waits.ring_all()
            logger.error("run_stopped", extra={"run": run, "error": str(error)})
        except Exception as error:
            stopped = error
            logger.exception("run_broke", extra={"run": run})
            await self._give_up(run, error)
        finally:
            actor.dismiss(stopped)
            self._left(actor)
            self._waits.ring(run)

    async def _give_up(self, run: RunId, error: Exception) -> None:
        """End a run that a fault of ours stopped, if that can still be recorded."""
        known = self._ledger.state.runs.get(run)
        if known is None or known.is_over:
            return
        try:
            await self._ledger.keep(known.tree, run, [RunFailed(run=run, error=f"internal error: {error}")])
        except (JournalFailedError, StaleAppendError) as failure:
            logger.error("run_stopped", extra={"run": run, "error": str(failure)})

    def _watch_time(self, tree: RunId) -> None:
        """Look again when the tree's next limit of seconds is passed: an idle subtree does nothing by itself."""
        timer = self._timers.pop(tree, None)
        if timer is not None:
            timer.cancel()
        now = self._ledger.now(tree)
        deadline = next_deadline(self._ledger.state, tree, now)
        if deadline is not None:
            loop = asyncio.get_running_loop()
            self._timers[tree] = loop.call_later((deadline - now) / 1000, self._time_passed, tree)

    def _time_passed(self, tree: RunId) -> None:
        for ending in overdue_endings(self._ledger.state, tree, self._ledger.now(tree)):
            self.deliver(ending)
        self._watch_time(tree)
