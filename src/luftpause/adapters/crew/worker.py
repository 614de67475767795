"""One worker as its foreman holds it: its process, its state, and what it counted.

One task owns it: takes an event, decides, performs. When it is started, stopped and started again is decided in
`core/processes`, as for engines.
"""

import asyncio
import contextlib
import itertools
import logging
import signal as signals
import socket
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from luftpause.adapters.crew.frames import Ask, Begin, ChannelError, Opened, Tell, Together, Told, hear, say
from luftpause.adapters.tether import tethered
from luftpause.core.model.ids import Instant
from luftpause.core.processes.actions import (
    Action,
    Deregister,
    ProbeProcess,
    Register,
    ReportFailure,
    ReportStopped,
    SignalProcess,
    StartProcess,
    StopSignal,
)
from luftpause.core.processes.decide import decide, next_deadline
from luftpause.core.processes.events import (
    Event,
    ProbeSucceeded,
    ProcessExited,
    ProcessStarted,
    StartRequested,
    StopRequested,
    WokeUp,
)
from luftpause.core.processes.reasons import explain
from luftpause.core.processes.state import Exited, Limits, Ready, never_started
from luftpause.telemetry.exposition import Counts, outlasting, summed

TOLD_S: Final = 2.0
"""How long a worker may take to say what it counted; one that is slower counts as it last said."""

_SIGNALS: Final = {StopSignal.TERM: signals.SIGTERM, StopSignal.KILL: signals.SIGKILL}
_LOG = logging.getLogger("luftpause.crew")


class WorkerFailedError(Exception):
    """A worker did not start. The message says which and how it ended; what it wrote itself says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """What a worker is.

    Attributes:
        number: counts from 1.
        command: program and arguments; its number and the descriptor of its channel are added.
        order: what it is told to do, as bytes that its program understands.
    """

    number: int
    command: Sequence[str]
    order: bytes = field(repr=False)
    limits: Limits


@dataclass(slots=True)
class _Attempt:
    """A process of the worker and our end of its channel."""

    process: Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    asked: dict[int, asyncio.Future[None]] = field(default_factory=dict)


class Worker:
    """Keeps one worker running.

    Args:
        ask_all: returns what all workers counted; a worker that is asked for it asks here.
    """

    def __init__(self, plan: WorkerPlan, *, ask_all: Callable[[], Awaitable[Counts]]) -> None:
        loop = asyncio.get_running_loop()
        self._plan = plan
        self._ask_all = ask_all
        self._state = never_started(plan.limits, Instant(loop.time()))
        self._mailbox: asyncio.Queue[Event] = asyncio.Queue()
        self._running: _Attempt | None = None
        self._requests = itertools.count(1)
        self._ended_ones: Counts = ()
        self._present: Counts = ()
        self.ready: asyncio.Future[None] = loop.create_future()
        """Done once its door is open for the first time, failed with WorkerFailedError if that went wrong."""

    @property
    def counts(self) -> Counts:
        """What it counted as far as is known, all its processes together."""
        return summed((self._ended_ones, self._present))

    def stop(self) -> None:
        """Let it drain and end. It does not come back."""
        self._mailbox.put_nowait(StopRequested())

    async def run(self) -> None:
        """Start it, and start it again when it ends, until it is stopped or has failed too often in a row."""
        self._mailbox.put_nowait(StartRequested())
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    for action in self._decide(await self._next_event()):
                        await self._perform(action, tasks)
                    if isinstance(self._state.phase, Exited):
                        return
        finally:
            if not self.ready.done():
                self.ready.cancel()
            # Nothing to do in an orderly end; after a fault or a cancellation no process may be left behind.
            if self._running is not None:
                self._signal(StopSignal.KILL)
                await self._running.process.wait()

    async def ask(self) -> None:
        """Ask it what it counted, and return once it told or took too long. One that does not run is not asked."""
        running = self._running
        if running is None or not isinstance(self._state.phase, Ready):
            return
        request = next(self._requests)
        answer = running.asked[request] = asyncio.get_running_loop().create_future()
        say(running.writer, Tell(request))
        try:
            async with asyncio.timeout(TOLD_S):
                await answer
        except TimeoutError:
            _LOG.warning("worker_does_not_answer", extra={"worker": self._plan.number})
        finally:
            del running.asked[request]

    async def _next_event(self) -> Event:
        try:
            async with asyncio.timeout_at(next_deadline(self._state)):
                return await self._mailbox.get()
        except TimeoutError:
            return WokeUp()

    def _decide(self, event: Event) -> tuple[Action, ...]:
        decision = decide(self._state, event, Instant(asyncio.get_running_loop().time()))
        was_ready = isinstance(self._state.phase, Ready)
        self._state = decision.state
        if isinstance(self._state.phase, Ready) and not was_ready and self._running is not None:
            _LOG.info("worker_ready", extra={"worker": self._plan.number, "worker_pid": self._running.process.pid})
            if not self.ready.done():
                self.ready.set_result(None)
        return decision.actions

    async def _perform(self, action: Action, tasks: asyncio.TaskGroup) -> None:
        match action:
            case StartProcess(attempt=attempt):
                await self._start(attempt, tasks)
            case SignalProcess(signal=signal):
                self._signal(signal)
            case ReportFailure():
                self._report(action)
            case ProbeProcess() | Register() | Deregister() | ReportStopped():
                pass  # it says by itself that it is ready, and the scheduler knows it by its own link
            case _:
                assert_never(action)

    def _report(self, failed: ReportFailure) -> None:
        why = explain(failed.failure)
        fields = {"worker": self._plan.number, "why": why, "retry_in_s": failed.retry_in_s}
        _LOG.log(logging.WARNING if failed.retry_in_s is not None else logging.ERROR, "worker_failed", extra=fields)
        if not self.ready.done():
            self.ready.set_exception(WorkerFailedError(f"worker {self._plan.number} {why}"))

    async def _start(self, attempt: int, tasks: asyncio.TaskGroup) -> None:
        assert self._running is None, "one process at a time"
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            try:
                self._running = _Attempt(await self._spawn(theirs.fileno()), reader, writer)
            except OSError as error:
                self._mailbox.put_nowait(ProcessExited(attempt=attempt, code=None, tail=(str(error),)))
                return
            finally:
                if self._running is None:
                    writer.close()
        say(writer, Begin(self._plan.order))
        self._mailbox.put_nowait(ProcessStarted(attempt=attempt))
        tasks.create_task(self._watch(attempt, self._running, tasks))

    async def _spawn(self, channel: int) -> Process:
        command = tethered((*self._plan.command, str(self._plan.number), str(channel)))
        # A session of its own: Ctrl-C at a terminal is for the foreman, who lets the workers drain.
        return await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, pass_fds=(channel,), start_new_session=True
        )

    def _signal(self, signal: StopSignal) -> None:
        if self._running is not None:
            with contextlib.suppress(ProcessLookupError):
                self._running.process.send_signal(_SIGNALS[signal])

    async def _watch(self, attempt: int, running: _Attempt, tasks: asyncio.TaskGroup) -> None:
        try:
            while (frame := await hear(running.reader)) is not None:
                match frame:
                    case Opened():
                        self._mailbox.put_nowait(ProbeSucceeded(attempt=attempt))
                    case Told(request=request, counts=counts):
                        self._present = counts
                        _settle(running.asked.get(request))
                    case Ask(request=request):
                        tasks.create_task(self._answer(request, running.writer))
                    case _:
                        raise ChannelError(f"{type(frame).__name__} is nothing that a worker says")
        except ChannelError as error:
            _LOG.warning("crew_channel_broken", extra={"worker": self._plan.number, "cause": str(error)})
            self._signal(StopSignal.KILL)
        finally:
            running.writer.close()
        code = await running.process.wait()
        for answer in running.asked.values():
            _settle(answer)
        self._ended_ones, self._present = summed((self._ended_ones, outlasting(self._present))), ()
        self._running = None
        self._mailbox.put_nowait(ProcessExited(attempt=attempt, code=code, tail=()))

    async def _answer(self, request: int, writer: asyncio.StreamWriter) -> None:
        say(writer, Together(request, tuple(await self._ask_all())))


def _settle(answer: asyncio.Future[None] | None) -> None:
    if answer is not None and not answer.done():
        answer.set_result(None)
