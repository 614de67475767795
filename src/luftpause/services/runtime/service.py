"""The runtime: spawns runs, lets them live, answers how they stand, and takes them up again after a restart.

Whoever waits for a run never owns it: runs belong to the service, so a client that leaves changes nothing.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from luftpause.core.model.ids import ModelName, PrincipalId, RunId
from luftpause.core.runs.advance import cancellations
from luftpause.core.runs.events import Ending, RunFailed, RunRecovered, RunSpawned
from luftpause.core.runs.state import Cancelled, Run
from luftpause.core.runs.tools import ToolSpec, find
from luftpause.core.runs.tree import tree_of
from luftpause.core.runs.view import RunView, view
from luftpause.ports.journal import Journal, JournalFailedError, StaleAppendError
from luftpause.ports.tools import Tools
from luftpause.ports.turns import Turns
from luftpause.services.runtime.actor import RunActor, Surroundings
from luftpause.services.runtime.ledger import Ledger
from luftpause.services.runtime.metrics import RuntimeMetrics
from luftpause.services.runtime.orders import (
    NotKeptError,
    RuntimeSettings,
    SpawnOrder,
    SpawnRefusedError,
    UnknownHandleError,
)
from luftpause.services.runtime.schema_fit import shown
from luftpause.services.runtime.tool_check import names_of
from luftpause.services.runtime.waits import Waits

_REPORTS_GRACE_S = 2.0
_CANCEL_WAIT_S = 30.0
logger = logging.getLogger("luftpause.runtime")


class RuntimeService:
    """All runs of one runtime. `start` it, then `close` it; tools, turns and models are opened and closed outside."""

    def __init__(
        self,
        journal: Journal,
        turns: Turns,
        tools: Tools,
        *,
        settings: RuntimeSettings | None = None,
        models: Callable[[], Awaitable[Sequence[ModelName]]] | None = None,
    ) -> None:
        self.settings = settings or RuntimeSettings()
        self._journal = journal
        self._turns = turns
        self._tools = tools
        self._models = models
        self._metrics = RuntimeMetrics()
        self._ledger = Ledger(journal, self._metrics)
        self._around = Surroundings(
            ledger=self._ledger, turns=turns, tools=tools, deliver=self._deliver, report_end=self._report_end
        )
        self._waits = Waits()
        self._actors: dict[RunId, RunActor] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._reports: set[asyncio.Task[None]] = set()
        self._journal_failure = ""
        self._open = False

    async def start(self) -> None:
        """Replay the journal and let unfinished runs go on.

        Raises:
            JournalFailedError: another runtime uses the state directory, or it cannot be read.
        """
        unfinished = await self._ledger.open()
        self._open = True
        for run in unfinished:
            actor = self._enliven(run, self._ledger.state.runs[run].tree)
            actor.put(RunRecovered(run=run))
        logger.info("runtime_started", extra={"runs": len(self._ledger.state.runs), "unfinished": len(unfinished)})

    async def close(self) -> None:
        """Stop. Unfinished runs stay unfinished and go on at the next start."""
        self._open = False
        lives = list(self._tasks.values())
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        if self._reports:
            await asyncio.wait(self._reports, timeout=_REPORTS_GRACE_S)
        for report in list(self._reports):
            report.cancel()
        await asyncio.gather(*self._reports, return_exceptions=True)
        await self._journal.close()

    @property
    def journal_failure(self) -> str:
        """Why nothing is kept any more, empty while all is well."""
        return self._journal_failure

    async def spawn(self, order: SpawnOrder) -> RunId:
        """Begin a run and return its handle once that is durable. It goes on whatever becomes of the caller.

        Raises:
            SpawnRefusedError: no such tool, no model, too many runs, or the journal is broken.
            UnknownHandleError: the principal has no such parent.
        """
        self._refuse_if_closed()
        if order.parent is not None and isinstance(self._run(order.principal, order.parent).phase, Cancelled):
            raise SpawnRefusedError(f"the parent {shown(order.parent)} was cancelled")
        tools = await self._choose_tools(order.tools)
        model = await self._choose_model(order.model)
        self._refuse_if_closed()
        if len(self._actors) >= self.settings.max_running:
            raise SpawnRefusedError(f"{len(self._actors)} runs are running, no more fit; await or cancel some first")
        spawned = RunSpawned(
            run=RunId(f"run_{secrets.token_urlsafe(16)}"),
            task=order.task,
            model=model,
            service_class=order.service_class,
            caller=order.caller,
            principal=order.principal,
            system=order.system,
            tools=tools,
            max_tool_calls=order.max_tool_calls,
            max_tokens=order.max_tokens,
            parallel_tool_calls=order.parallel_tool_calls,
            parent=order.parent,
        )
        actor = self._enliven(spawned.run, tree_of(self._ledger.state, spawned))
        actor.put(spawned)
        try:
            await asyncio.shield(actor.begun)
        except (JournalFailedError, StaleAppendError) as error:
            raise SpawnRefusedError(f"nothing was spawned: {error}") from error
        return spawned.run

    def look(self, principal: PrincipalId, handles: Sequence[str]) -> list[RunView]:
        """Return how these runs stand, in the order asked for.

        Raises:
            UnknownHandleError: names the first one that the principal does not have.
        """
        for handle in handles:
            self._run(principal, handle)
        return [view(self._ledger.state, RunId(handle)) for handle in handles]

    def look_at_all(self, principal: PrincipalId | None = None) -> list[RunView]:
        """Return how all runs stand, of one principal or of all, by handle."""
        state = self._ledger.state
        mine = (run for run, known in state.runs.items() if principal in (None, known.spawn.principal))
        return [view(state, run) for run in sorted(mine)]

    async def wait(
        self, principal: PrincipalId, handles: Sequence[str], mode: Literal["all", "any"], timeout_s: float
    ) -> bool:
        """Return True once all or any of the runs are over, False when the time is up.

        Raises:
            UnknownHandleError: names the first one that the principal does not have.
            NotKeptError: the journal has failed, so no further run ends.
        """
        self.look(principal, handles)
        runs = [RunId(handle) for handle in handles]
        enough = all if mode == "all" else any
        return await self._until(runs, lambda: enough(map(self._ledger.is_over, runs)), timeout_s)

    async def cancel(self, principal: PrincipalId, handle: str) -> RunView:
        """End a run and all that run below it; one that is over stays as it is.

        Raises:
            UnknownHandleError: the principal has no such run.
            NotKeptError: it could not be recorded, so it may not last.
        """
        self._run(principal, handle)
        run = RunId(handle)
        endings = cancellations(self._ledger.state, run, "on request")
        for ending in endings:
            self._deliver(ending)
        ended = [ending.run for ending in endings]
        if not await self._until(ended, lambda: all(map(self._ledger.is_over, ended)), _CANCEL_WAIT_S):
            raise NotKeptError(f"the end of {run} was not recorded within {_CANCEL_WAIT_S:g} s")
        return view(self._ledger.state, run)

    async def catalogue(self) -> Sequence[ToolSpec]:
        """Return the tools that runs can be given, by name."""
        return await self._tools.catalogue()

    def metrics_page(self) -> bytes:
        """Return the metrics in the Prometheus text format."""
        return self._metrics.show(running=self._ledger.state.running, journal_failed=bool(self._journal_failure))

    async def _until(self, runs: Sequence[RunId], satisfied: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for runs to end, but not for a journal that has failed to record it."""
        await self._waits.until(runs, lambda: satisfied() or bool(self._journal_failure), timeout_s)
        if not satisfied() and self._journal_failure:
            raise NotKeptError(f"no run can end any more: {self._journal_failure}")
        return satisfied()

    def _run(self, principal: PrincipalId, handle: str) -> Run:
        known = self._ledger.state.runs.get(RunId(handle))
        if known is None or known.spawn.principal != principal:
            raise UnknownHandleError(handle)
        return known

    def _refuse_if_closed(self) -> None:
        if self._journal_failure:
            raise SpawnRefusedError(f"nothing can be spawned: {self._journal_failure}")
        if not self._open:
            raise SpawnRefusedError("nothing can be spawned: the runtime is shutting down")

    async def _choose_tools(self, wanted: tuple[str, ...] | None) -> tuple[ToolSpec, ...]:
        if wanted == ():
            return ()
        catalogue = await self._tools.catalogue(wanted)
        if wanted is None:
            return tuple(catalogue)
        chosen: dict[str, ToolSpec] = {}
        for name in wanted:
            tool = find(catalogue, name)
            if tool is None:
                raise SpawnRefusedError(f"there is no tool {shown(name)}; tools: {names_of(catalogue)}")
            chosen.setdefault(tool.name, tool)
        return tuple(chosen.values())

    async def _choose_model(self, wanted: ModelName | None) -> ModelName:
        if wanted is not None:
            return wanted
        if self.settings.default_model is not None:
            return self.settings.default_model
        served = [] if self._models is None else await self._models()
        if not served:
            raise SpawnRefusedError("name a model: there is no default and none is served yet")
        return served[0]

    def _enliven(self, run: RunId, tree: RunId) -> RunActor:
        actor = RunActor(run, tree, self._around)
        self._actors[run] = actor
        self._tasks[run] = asyncio.create_task(self._supervise(run, actor), name=f"life of {run}")
        return actor

    async def _supervise(self, run: RunId, actor: RunActor) -> None:
        """Let a run live; whatever stops it stops it alone."""
        stopped: Exception | None = None
        try:
            await actor.live()
        except (JournalFailedError, StaleAppendError) as error:
            stopped = error
            if isinstance(error, JournalFailedError):
                self._journal_failure = str(error)
                self._waits.ring_all()
            logger.error("run_stopped", extra={"run": run, "error": str(error)})
        except Exception as error:
            stopped = error
            logger.exception("run_broke", extra={"run": run})
            await self._give_up(run, error)
        finally:
            self._actors.pop(run, None)
            self._tasks.pop(run, None)
            self._waits.ring(run)
            if not actor.begun.done():
                actor.begun.set_exception(stopped or JournalFailedError("the runtime is shutting down"))
                actor.begun.exception()  # seen: whoever spawned may have left already

    async def _give_up(self, run: RunId, error: Exception) -> None:
        """End a run that a fault of ours stopped, if that can still be recorded."""
        known = self._ledger.state.runs.get(run)
        if known is None or known.is_over:
            return
        try:
            await self._ledger.keep(known.tree, run, [RunFailed(run=run, error=f"internal error: {error}")])
        except (JournalFailedError, StaleAppendError) as failure:
            logger.error("run_stopped", extra={"run": run, "error": str(failure)})

    def _deliver(self, ending: Ending) -> None:
        actor = self._actors.get(ending.run)
        if actor is not None:
            actor.put(ending)

    def _report_end(self, run: RunId) -> None:
        principal = self._ledger.state.runs[run].spawn.principal
        report = asyncio.create_task(self._turns.end_run(principal, run), name=f"end of {run}")
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)
