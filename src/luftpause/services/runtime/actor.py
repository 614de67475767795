"""One run's life: its events one batch after another into the ledger, and what follows from them as small tasks.

The actor owns the tasks of its run; each ends by putting one event into the actor's inbox. Closing the runtime
cancels actor and tasks without a word in the journal: the run is unfinished then, and goes on at the next start.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import assert_never

from luftpause.core.model.ids import RunId
from luftpause.core.runs.actions import Action, CallTool, CancelWork, CheckCall, EndRun, ReportEnd, TakeTurn
from luftpause.core.runs.events import (
    Ending,
    Event,
    RunFailed,
    RunSpawned,
    ToolCallIntended,
    ToolCallRejected,
    ToolReturned,
    TurnTaken,
)
from luftpause.core.runs.tools import ToolSpec, find
from luftpause.ports.tools import ToolOutcome, Tools
from luftpause.ports.turns import TurnFailedError, TurnRequest, Turns
from luftpause.services.runtime.ledger import Ledger
from luftpause.services.runtime.tool_check import SoundCall, parse_arguments, verdict

logger = logging.getLogger("luftpause.runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an actor needs of the runtime around it.

    Attributes:
        deliver: hands an ending to the actor of whichever run it is about.
        report_end: lets the scheduler know, in the background.
    """

    ledger: Ledger
    turns: Turns
    tools: Tools
    deliver: Callable[[Ending], None]
    report_end: Callable[[RunId], None]


class RunActor:
    """Lives one run. `put` what happened to it; `live` returns when it is over."""

    def __init__(self, run: RunId, tree: RunId, around: Surroundings) -> None:
        self._run = run
        self._tree = tree
        self._around = around
        self._inbox: asyncio.Queue[Event] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends once the first event is durable, or with the reason why it is not."""

    def put(self, event: Event) -> None:
        """Hand in an event of this run."""
        self._inbox.put_nowait(event)

    async def live(self) -> None:
        """Go on until the run is over.

        Raises:
            JournalFailedError: the run stops where its journal does.
            StaleAppendError: somebody else lives this run.
        """
        try:
            while not self._around.ledger.is_over(self._run):
                events = [await self._inbox.get()]
                while not self._inbox.empty():
                    events.append(self._inbox.get_nowait())
                actions = await self._around.ledger.keep(self._tree, self._run, events)
                if not self.begun.done():
                    self.begun.set_result(None)
                for action in actions:
                    self._perform(action)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _perform(self, action: Action) -> None:
        match action:
            case TakeTurn():
                self._begin(self._take_turn(action))
            case CheckCall():
                self._begin(self._check_call(action))
            case CallTool():
                self._begin(self._call_tool(action))
            case EndRun():
                self._around.deliver(action.ending)
            case CancelWork():
                for task in self._tasks:
                    task.cancel()
            case ReportEnd():
                self._around.report_end(action.run)
            case _:
                assert_never(action)

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(self._guard(work), name=self._run)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, work: Coroutine[object, object, None]) -> None:
        """A fault in one run's work ends that run, visibly, and nothing else."""
        try:
            await work
        except Exception as error:
            logger.exception("run_work_broke", extra={"run": self._run})
            self.put(RunFailed(run=self._run, error=f"internal error: {error}"))

    async def _take_turn(self, action: TakeTurn) -> None:
        started = asyncio.get_running_loop().time()
        request = TurnRequest(
            run=action.run,
            parent=action.parent,
            principal=self._spawn.principal,
            caller=action.caller,
            service_class=action.service_class,
            model=action.model,
            messages=action.messages,
            tools=action.tools,
            max_tokens=action.max_tokens,
            parallel_tool_calls=action.parallel_tool_calls,
        )
        try:
            reply = await self._around.turns.take(request)
        except TurnFailedError as error:
            self.put(RunFailed(run=action.run, error=str(error)))
            return
        took_ms = _ms_since(started)
        self.put(
            TurnTaken(run=action.run, message=reply.message, finish=reply.finish, usage=reply.usage, took_ms=took_ms)
        )

    async def _check_call(self, action: CheckCall) -> None:
        found = verdict(action, self._granted())
        if isinstance(found, SoundCall):
            self.put(ToolCallIntended(run=action.run, call=action.call, repeatable=found.tool.repeatable))
        else:
            self.put(ToolCallRejected(run=action.run, call=action.call, text=found.text))

    async def _call_tool(self, action: CallTool) -> None:
        started = asyncio.get_running_loop().time()
        tool = find(self._granted(), action.tool)
        arguments = parse_arguments(action.arguments)
        # Only sound calls are recorded as intended; a later version may see soundness otherwise.
        outcome = ToolOutcome(text="Error: this call cannot be made any more", failed=True)
        if tool is not None and arguments is not None:
            outcome = await self._around.tools.call(tool, arguments, action.key)
        self.put(
            ToolReturned(
                run=action.run,
                call=action.call,
                text=outcome.text,
                failed=outcome.failed,
                outcome_unknown=outcome.unknown,
                took_ms=_ms_since(started),
            )
        )

    def _granted(self) -> tuple[ToolSpec, ...]:
        return self._spawn.tools

    @property
    def _spawn(self) -> RunSpawned:
        return self._around.ledger.state.runs[self._run].spawn


def _ms_since(started: float) -> int:
    return round((asyncio.get_running_loop().time() - started) * 1000)
