"""The runtime: spawns runs, lets them live, answers how they stand, and takes them up again after a restart."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final, Literal

from luftpause.core.model.ids import PrincipalId, RunId
from luftpause.core.runs.events import MessageSent
from luftpause.core.runs.go_on import barred, cancellations
from luftpause.core.runs.replay import conversation
from luftpause.core.runs.state import Failed, Failing, Finished, Run
from luftpause.core.runs.tools import ToolSpec
from luftpause.core.runs.view import RunView, view
from luftpause.ports.journal import Journal, JournalFailedError
from luftpause.ports.tools import Tools
from luftpause.ports.tracing import Tracer
from luftpause.ports.turns import Turns
from luftpause.services.runtime.actor import SHUTTING_DOWN
from luftpause.services.runtime.approvals import Approvals
from luftpause.services.runtime.glance import Glance
from luftpause.services.runtime.ledger import Ledger, unreadable
from luftpause.services.runtime.lives import Lives
from luftpause.services.runtime.metrics import RuntimeMetrics
from luftpause.services.runtime.orders import (
    NotKeptError,
    RuntimeSettings,
    SendRefusedError,
    SpawnOrder,
    Transcript,
)
from luftpause.services.runtime.run_spans import RunSpans
from luftpause.services.runtime.spawning import Models, Spawner
from luftpause.services.runtime.waits import Waits
from luftpause.telemetry.borrowed import dropped_spans
from luftpause.telemetry.exposition import Counts

OVERVIEW_MAX: Final = 1000
UNHEARD_MAX: Final = 100
"""Messages that a run may have waiting for its next turn."""

_CANCEL_WAIT_S: Final = 30.0
logger = logging.getLogger("luftpause.runtime")


class RuntimeService:
    """All runs of one runtime. `start` it, then `close` it; tools, turns and models are opened and closed outside.

    Attributes:
        approvals: decisions on tool calls that wait for a person.
        catalogue: returns the tools that runs can be given, by name.
        note_on: returns what whoever orders a run should know of where it stands, empty for nothing.
        changed_utc: returns when anything was last put on record of a known run, for people: seconds of UTC.
    """

    def __init__(
        self,
        journal: Journal,
        turns: Turns,
        tools: Tools,
        *,
        settings: RuntimeSettings | None = None,
        models: Models | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.settings = settings or RuntimeSettings()
        self._journal = journal
        self.catalogue: Callable[[], Awaitable[Sequence[ToolSpec]]] = tools.catalogue
        self._metrics = RuntimeMetrics()
        if tracer is not None:
            self._metrics.show(dropped_spans(lambda: tracer.dropped))
        self._waits = Waits()
        spans = RunSpans(tracer)
        self._ledger = Ledger(journal, self._metrics, self._waits.ring, spans)
        self._lives = Lives(self._ledger, turns, tools, self._waits, spans)
        self._spawner = Spawner(self._ledger, self._lives, tools, self.settings, models)
        self.note_on: Callable[[SpawnOrder], str] = self._spawner.note_on
        self.changed_utc: Callable[[RunId], float] = journal.written_utc
        self.approvals = Approvals(self._ledger, self._lives, self._waits)
        self._open = False

    async def start(self) -> None:
        """Replay the journal and let unfinished runs go on.

        Raises:
            JournalFailedError: another runtime uses the state directory, or it cannot be read.
        """
        unfinished = await self._ledger.open()
        self._open = True
        self._lives.take_up(unfinished)
        logger.info("runtime_started", extra={"runs": len(self._ledger.state.runs), "unfinished": len(unfinished)})

    async def close(self) -> None:
        """Stop. Unfinished runs stay unfinished and go on at the next start."""
        self._open = False
        await self._spawner.close()
        await self._lives.close()
        await self._journal.close()

    @property
    def journal_failure(self) -> str:
        """Why nothing is kept any more, empty while all is well."""
        return self._lives.failure

    async def spawn(self, order: SpawnOrder) -> RunId:
        """Begin a run and return its handle once that is durable. It goes on whatever becomes of the caller.

        An order with an idempotency key that spawned already returns the handle of that run.

        Raises:
            SpawnRefusedError: no such tool, no model, too many or too deep runs, a spent budget, a key that was used
                for something else, or a broken journal.
            UnknownHandleError: the principal has no such parent, or no such run to come after.
        """
        return await self._spawner.spawn(order)

    def look(self, principal: PrincipalId, handles: Sequence[str]) -> list[RunView]:
        """Return how these runs stand, in the order asked for.

        Raises:
            UnknownHandleError: names the first one that the principal does not have.
        """
        return [self._view(self._ledger.find(principal, handle).spawn.run) for handle in handles]

    def glance(self, principal: PrincipalId | None = None, limit: int = OVERVIEW_MAX) -> Glance:
        """Return how runs stand, of one principal or of all: so many of them, newest first."""
        chosen, left_out = self._ledger.newest(principal, limit, first=reversed(self._lives.running))
        state = self._ledger.state
        moments = ((run, self._ledger.now(state.runs[run].tree)) for run in chosen)
        return Glance(state=state, chosen=tuple(moments), left_out=left_out)

    async def wait(
        self,
        principal: PrincipalId,
        handles: Sequence[str],
        mode: Literal["all", "any"],
        timeout_s: float,
        *,
        or_approval: bool = False,
    ) -> bool:
        """Return True once all or any of the runs are over, False when the time is up.

        With `or_approval` it returns False too as soon as one of the runs has a call that waits to be allowed and that
        nobody has claimed to ask about.

        Raises:
            UnknownHandleError: names the first one that the principal does not have.
            NotKeptError: the journal has failed, so no further run ends.
        """
        runs = [self._ledger.find(principal, handle).spawn.run for handle in handles]
        enough = all if mode == "all" else any

        def over() -> bool:
            return enough(map(self._ledger.is_over, runs))

        def asked() -> bool:
            return or_approval and any(self.approvals.unclaimed(run) for run in runs)

        await self._until(runs, lambda: over() or asked(), timeout_s)
        return over()

    async def cancel(self, principal: PrincipalId, handle: str) -> RunView:
        """End a run and all that run below it; one that is over stays as it is.

        Raises:
            UnknownHandleError: the principal has no such run.
            NotKeptError: it could not be recorded, so it may not last.
        """
        run = self._ledger.find(principal, handle).spawn.run
        endings = cancellations(self._ledger.state, run, "cancelled: on request")
        for ending in endings:
            self._lives.deliver(ending)
        ended = [ending.run for ending in endings]
        if not await self._until(ended, lambda: all(map(self._ledger.is_over, ended)), _CANCEL_WAIT_S):
            raise NotKeptError(f"the end of {run} was not recorded within {_CANCEL_WAIT_S:g} s")
        return self.look(principal, [handle])[0]

    async def send(self, principal: PrincipalId, handle: str, text: str) -> RunView:
        """Tell a run more and return how it stands once that is durable: a finished one goes on.

        Raises:
            UnknownHandleError: the principal has no such run.
            SendRefusedError: it failed, was cancelled, has no budget left, or too many runs or messages are open.
            NotKeptError: it could not be recorded, so it may not be heard.
        """
        run = self._ledger.find(principal, handle)
        refusal = self._refusal_to_hear(run)
        if refusal:
            raise SendRefusedError(refusal)
        if not await self._lives.tell(run.tree, MessageSent(run=run.spawn.run, text=text)):
            raise SendRefusedError(f"{run.spawn.run} ended before it could hear the message")
        return self.look(principal, [handle])[0]

    async def transcript(self, principal: PrincipalId, handle: str, first: int, limit: int) -> Transcript:
        """Return a part of a run's conversation so far: from the message at place `first` on, at most `limit`.

        Raises:
            UnknownHandleError: the principal has no such run.
            NotKeptError: the journal cannot give it back.
        """
        run = self._ledger.find(principal, handle)
        said = run.messages
        if not said:
            try:
                history = await self._journal.history(run.spawn.run)
            except JournalFailedError as error:
                raise NotKeptError(str(error)) from error
            said = conversation(history)
            if history.damage and not said:
                raise NotKeptError(unreadable(history))
        return Transcript(first=first, total=len(said), messages=said[first : first + limit])

    def changes(self, principal: PrincipalId, handles: Sequence[str]) -> AsyncGenerator[RunView, None]:
        """Yield how each of these runs stands, and again whenever that changed; close it to stop.

        It goes on after the runs' ends, for a message makes a run go on, until none of them is known any more. Whoever
        is slow misses what was in between, never the last.

        Raises:
            UnknownHandleError: names the first one that the principal does not have.
        """
        return self._changes([self._ledger.find(principal, handle).spawn.run for handle in handles])

    def counts(self) -> Counts:
        """Return what was counted so far."""
        return self._metrics.counts(running=self._ledger.state.running, journal_failed=bool(self.journal_failure))

    async def _changes(self, runs: Sequence[RunId]) -> AsyncGenerator[RunView, None]:
        shown: dict[RunId, object] = {}
        with self._waits.listening(runs) as bell:
            while True:
                bell.clear()
                known = [run for run in runs if run in self._ledger.state.runs]
                for run in known:
                    seen = self._view(run)
                    standing = (seen.status, seen.phase, seen.pending_approvals, seen.own.turns, seen.own.tool_calls)
                    if shown.get(run) != standing:
                        shown[run] = standing
                        yield seen
                if not known:
                    return
                await bell.wait()

    async def _until(self, runs: Sequence[RunId], satisfied: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for runs to change, but not for a journal that has failed to record it."""
        await self._waits.until(runs, lambda: satisfied() or bool(self.journal_failure), timeout_s)
        if not satisfied() and self.journal_failure:
            raise NotKeptError(f"no run can end any more: {self.journal_failure}")
        return satisfied()

    def _refusal_to_hear(self, run: Run) -> str:
        """Return why a run takes no message, empty if it does."""
        name, phase = run.spawn.run, run.phase
        if isinstance(phase, Failed | Failing):
            return f"{name} failed and cannot go on: {phase.error}; spawn another one"
        bar = barred(self._ledger.state, run, self._ledger.now(run.tree))
        if bar:
            return f"{name} cannot go on: {bar}; spawn another one"
        if len(run.unheard) >= UNHEARD_MAX:
            return f"{name} has {len(run.unheard)} messages waiting for its next turn; wait for that"
        if not self._open:
            return f"{name} hears nothing: {SHUTTING_DOWN}"
        return self._spawner.full() if isinstance(phase, Finished) else ""

    def _view(self, run: RunId) -> RunView:
        state = self._ledger.state
        return view(state, run, self._ledger.now(state.runs[run].tree))
