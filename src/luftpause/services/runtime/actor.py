"""One run's life: its events one batch after another into the ledger, and what follows from them as small tasks.

The actor owns the tasks of its run; each ends by putting one event into the actor's inbox. Closing the runtime
cancels actor and tasks without a word in the journal: the run is unfinished then, and goes on at the next start.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar, assert_never

from luftpause.core.model.ids import RunId
from luftpause.core.runs.actions import (
    Action,
    CallTool,
    CancelWork,
    CheckAnswer,
    CheckCall,
    Record,
    ReportEnd,
    TakeTurn,
)
from luftpause.core.runs.advance import is_stale
from luftpause.core.runs.approvals import approval_reason
from luftpause.core.runs.events import (
    AnswerRejected,
    ApprovalAsked,
    Event,
    MessageSent,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunSpawned,
    ToolCallIntended,
    ToolCallRejected,
    ToolReturned,
    TurnFailed,
    TurnTaken,
)
from luftpause.core.runs.state import Finished, Run
from luftpause.core.runs.tools import find
from luftpause.ports.journal import JournalFailedError, StaleAppendError
from luftpause.ports.tools import ToolOutcome, Tools
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest, Turns
from luftpause.services.runtime.answer_check import Misfit, verdict_on
from luftpause.services.runtime.ledger import Ledger
from luftpause.services.runtime.reply_check import checked
from luftpause.services.runtime.run_spans import RunSpans
from luftpause.services.runtime.tool_check import UnsoundCall, arguments_for, verdict

T = TypeVar("T")
LONG_CHARS: Final = 4_000
SHUTTING_DOWN: Final = "the runtime is shutting down"
logger = logging.getLogger("luftpause.runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an actor needs of the runtime around it.

    Attributes:
        deliver: hands an event to the actor of whichever run it is about.
        report_end: lets the scheduler know, in the background.
        began: told of a tree in which a run began or went on, for its limits.
        left: told by an actor that takes no more events.
    """

    ledger: Ledger
    turns: Turns
    tools: Tools
    spans: RunSpans
    deliver: Callable[[Event], None]
    report_end: Callable[[ReportEnd], None]
    began: Callable[[RunId], None]
    left: Callable[["RunActor"], None]


@dataclass(frozen=True, slots=True)
class _Letter:
    """An event, and who wants to know what became of it: True if it changed anything."""

    event: Event
    answer: asyncio.Future[bool] | None = None

    def settle(self, *, effective: bool) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(effective)

    def fail(self, error: Exception) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # seen: whoever asked may have left already


class RunActor:
    """Lives one run. `put` what happened to it; `live` returns when it is over."""

    def __init__(self, run: RunId, tree: RunId, around: Surroundings) -> None:
        self.run = run
        self._tree = tree
        self._around = around
        self._inbox: deque[_Letter] = deque()
        self._mail = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun = False

    def put(self, event: Event) -> None:
        """Hand in an event of this run."""
        if isinstance(event, RunCancelled) and any(isinstance(each.event, RunCancelled) for each in self._inbox):
            return
        self._inbox.append(_Letter(event))
        self._mail.set()

    def ask(self, event: Event) -> asyncio.Future[bool]:
        """Hand in an event; the future tells once it is durable whether it changed anything, or why it is not kept.

        Cancelling it takes nothing back.
        """
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._inbox.append(_Letter(event, answer))
        self._mail.set()
        return answer

    async def live(self) -> None:
        """Go on until the run is over.

        Raises:
            JournalFailedError: the run stops where its journal does.
            StaleAppendError: somebody else lives this run.
        """
        try:
            while True:
                letters = self._open_mail()
                if letters:
                    await self._take_in(letters)
                elif self._is_over():
                    return
                else:
                    self._mail.clear()
                    await self._mail.wait()
        finally:
            # In the same step as the last look into the inbox: whoever comes later finds another actor.
            self._around.left(self)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def dismiss(self, error: Exception) -> None:
        """Tell everybody who still waits for an answer why there is none."""
        self._fail(self._inbox, error)
        self._inbox.clear()

    def _is_over(self) -> bool:
        """Whether it is over, or was so long ago that nobody knows it any more."""
        known = self._around.ledger.state.runs.get(self.run)
        return self._begun if known is None else known.is_over

    def _open_mail(self) -> list[_Letter]:
        """Take what is there, up to a message, for what comes behind one may be outdated by it."""
        state = self._around.ledger.state
        run = state.runs.get(self.run)
        letters: list[_Letter] = []
        while self._inbox:
            letter = self._inbox.popleft()
            is_message = isinstance(letter.event, MessageSent)
            too_late = run is not None and run.is_over and not (is_message and isinstance(run.phase, Finished))
            if too_late or is_stale(state, letter.event):
                letter.settle(effective=False)
                continue
            letters.append(letter)
            if is_message:
                break
        return letters

    async def _take_in(self, letters: list[_Letter]) -> None:
        try:
            unreadable = await self._recall()
            if unreadable is not None:
                self._fail(letters, unreadable)
                return
            events = [letter.event for letter in letters]
            kept = await self._around.ledger.keep(self._tree, self.run, events)
        except BaseException as error:
            self._fail(letters, error if isinstance(error, Exception) else JournalFailedError(SHUTTING_DOWN))
            raise
        self._begun = True
        for letter, effective in zip(letters, kept.effective, strict=True):
            letter.settle(effective=effective)
            if effective and isinstance(letter.event, RunSpawned | MessageSent):
                self._around.began(self._tree)
        for action in kept.actions:
            self._perform(action)

    async def _recall(self) -> Exception | None:
        """Bring back what was said in a run that is over and is to go on; return why that cannot be had."""
        run = self._around.ledger.state.runs.get(self.run)
        if run is None or not run.is_over:
            return None
        try:
            await self._around.ledger.recall(self.run)
        except (JournalFailedError, StaleAppendError) as error:
            return error
        return None

    @staticmethod
    def _fail(letters: Iterable[_Letter], error: Exception) -> None:
        for letter in letters:
            letter.fail(error)

    def _perform(self, action: Action) -> None:
        match action:
            case TakeTurn():
                self._begin(self._take_turn(action))
            case CheckCall():
                self._begin(self._check_call(action))
            case CallTool():
                self._begin(self._call_tool(action))
            case CheckAnswer():
                self._begin(self._check_answer(action))
            case Record():
                self._around.deliver(action.event)
            case CancelWork():
                for task in self._tasks:
                    task.cancel()
            case ReportEnd():
                self._around.report_end(action)
            case _:
                assert_never(action)

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(self._guard(work), name=self.run)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it may have been cancelled before it began

    async def _guard(self, work: Coroutine[object, object, None]) -> None:
        """A fault in one run's work ends that run, visibly, and nothing else."""
        try:
            await work
        except Exception as error:
            logger.exception("run_work_broke", extra={"run": self.run})
            self.put(RunFailed(run=self.run, error=f"internal error: {error}"))

    async def _take_turn(self, action: TakeTurn) -> None:
        started = asyncio.get_running_loop().time()
        try:
            reply = await self._reply_to(action)
        except TurnFailedError as error:
            self.put(TurnFailed(run=action.run, error=str(error)))
            return
        took_ms = _ms_since(started)
        self.put(
            TurnTaken(
                run=action.run,
                message=reply.message,
                finish=reply.finish,
                usage=reply.usage,
                took_ms=took_ms,
                origin_run=None if action.origin is None else reply.parent,
            )
        )

    async def _reply_to(self, action: TakeTurn) -> TurnReply:
        state, run = self._around.ledger.state, self._standing
        with self._around.spans.turn(state, action) as work:
            request = TurnRequest(
                run=action.run,
                parent=action.parent,
                principal=run.spawn.principal,
                caller=action.caller,
                service_class=action.service_class,
                model=action.model,
                messages=action.messages,
                tools=action.tools,
                max_tokens=action.max_tokens,
                parallel_tool_calls=action.parallel_tool_calls,
                answer_schema=action.answer_schema,
                traceparent=work.header,
                approve_tools=[tool.name for tool in action.tools if approval_reason(state, run, tool) is not None],
                origin=action.origin,
            )
            reply = checked(await self._around.turns.take(request), request)
            work.replied(reply)
            return reply

    async def _check_call(self, action: CheckCall) -> None:
        run = self._standing
        found = await _judged(action.arguments, lambda: verdict(action, run.spawn.tools))
        if isinstance(found, UnsoundCall):
            self.put(ToolCallRejected(run=action.run, call=action.call, text=found.text))
            return
        tool = found.tool
        reason = approval_reason(self._around.ledger.state, run, tool)
        if reason is None:
            self.put(ToolCallIntended(run=action.run, call=action.call, repeatable=tool.repeatable))
            return
        self.put(
            ApprovalAsked(
                run=action.run, call=action.call, tool=tool.qualified, reason=reason, repeatable=tool.repeatable
            )
        )

    async def _call_tool(self, action: CallTool) -> None:
        started = asyncio.get_running_loop().time()
        tool = find(self._standing.spawn.tools, action.tool)
        arguments = (
            None if tool is None else await _judged(action.arguments, partial(arguments_for, tool, action.arguments))
        )
        # Only sound calls are recorded as intended; a later version may see soundness otherwise.
        outcome = ToolOutcome(text="Error: this call cannot be made any more", failed=True)
        if tool is not None and arguments is not None:
            with self._around.spans.call(self._around.ledger.state, action) as work:
                outcome = await self._around.tools.call(tool, arguments, action.key, work.header)
                work.returned(outcome)
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

    async def _check_answer(self, action: CheckAnswer) -> None:
        found = await asyncio.to_thread(verdict_on, action.text, action.schema)
        if isinstance(found, Misfit):
            self.put(AnswerRejected(run=action.run, complaint=found.complaint))
        else:
            self.put(RunFinished(run=action.run, result=action.text, structured=found.value))

    @property
    def _standing(self) -> Run:
        return self._around.ledger.state.runs[self.run]


async def _judged(text: str, judge: Callable[[], T]) -> T:
    """Return what comes of judging arguments: in a thread where they are so long that it takes its time."""
    return await asyncio.to_thread(judge) if len(text) > LONG_CHARS else judge()


def _ms_since(started: float) -> int:
    return round((asyncio.get_running_loop().time() - started) * 1000)
