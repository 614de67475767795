"""The launcher: keeps every planned engine process alive and its replica declared.

One mailbox, one consumer: take an event, decide, perform. What takes time runs in tasks of its own, each of which
ends by putting one event back. Which process is started or stopped when is decided in `core/processes`.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias, assert_never

from luftpause.core.model.ids import Instant
from luftpause.core.processes.actions import (
    Action,
    Deregister,
    ProbeProcess,
    Register,
    ReportFailure,
    SignalProcess,
    StartProcess,
    StopSignal,
)
from luftpause.core.processes.decide import decide, next_deadline
from luftpause.core.processes.events import (
    Event,
    ProbeFailed,
    ProbeSucceeded,
    ProcessExited,
    ProcessStarted,
    StartRequested,
    StopRequested,
    WokeUp,
)
from luftpause.core.processes.reasons import explain
from luftpause.core.processes.state import Exited, Limits, never_started
from luftpause.ports.engines import Engines
from luftpause.ports.processes import CouldNotStartError, Launch, ProcessHost, RunningProcess
from luftpause.ports.scheduler import SchedulerLink
from luftpause.services.launcher.instance import Instance, InstanceView
from luftpause.services.launcher.planning import PORT_PLACEHOLDER, LauncherPlan
from luftpause.services.launcher.readiness import answers

_LOG = logging.getLogger("luftpause.launcher")
Work: TypeAlias = Coroutine[None, None, None]
_CLOSE_MARGIN_S: Final = 5.0
"""Past the grace: a killed group is gone within milliseconds, and the link takes the last declarations."""


class LauncherService:
    """Starts engines, watches them, and tells the scheduler which replicas there are.

    Args:
        on_change: called in the event loop whenever an engine goes from one state to another.
    """

    def __init__(
        self,
        plan: LauncherPlan,
        host: ProcessHost,
        *,
        engines: Engines,
        link: SchedulerLink,
        on_change: Callable[[InstanceView], None] | None = None,
    ) -> None:
        self._plan = plan
        self._host = host
        self._engines = engines
        self._link = link
        self._on_change = on_change
        self._instances: list[Instance] = []
        self._mailbox: asyncio.Queue[tuple[Instance, Event]] = asyncio.Queue()
        self._declarations: asyncio.Queue[Callable[[], Work] | None] = asyncio.Queue()
        self._owner: asyncio.Task[None] | None = None
        self._closing = False

    async def start(self) -> None:
        """Begin to start every engine, and return without waiting for any of them. Once only."""
        assert self._owner is None, "started twice"
        if not self._plan.engines:
            return  # nothing to watch, and nobody who could say at the end that all are gone
        now = self._now()
        for plan in self._plan.engines:
            limits = Limits(readiness_timeout_s=plan.readiness_timeout_s, stop_grace_s=self._plan.stop_grace_s)
            instance = Instance(plan=plan, state=never_started(limits, now))
            self._instances.append(instance)
            self._mailbox.put_nowait((instance, StartRequested()))
        self._owner = asyncio.create_task(self._run(), name="launcher")

    async def close(self) -> None:
        """Stop every engine and wait until all of their process groups are gone; kill what outlasts the grace."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        self._closing = True
        for instance in self._instances:
            self._mailbox.put_nowait((instance, StopRequested()))
        try:
            async with asyncio.timeout(self._plan.stop_grace_s + _CLOSE_MARGIN_S):
                await owner
        except TimeoutError:
            _LOG.error("launcher_close_overdue", extra={"grace_s": self._plan.stop_grace_s})

    def snapshot(self) -> tuple[InstanceView, ...]:
        """Return every engine as it is now, in the order of the configuration."""
        now = self._now()
        return tuple(instance.view(now) for instance in self._instances)

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                declaring = tasks.create_task(self._declare(), name="launcher-declare")
                probes = await self._consume(tasks)
                for probe in probes:
                    probe.cancel()
                self._declarations.put_nowait(None)
                await declaring
        except Exception:
            _LOG.exception("launcher_failed")
            raise
        finally:
            # Nothing to do in an orderly end; after a fault or a cancellation no engine may be left behind.
            for instance in self._instances:
                if instance.running is not None:
                    instance.running.signal(StopSignal.KILL)

    async def _consume(self, tasks: asyncio.TaskGroup) -> set[asyncio.Task[None]]:
        probes: set[asyncio.Task[None]] = set()
        while not self._is_over():
            for instance, event in await self._next_events():
                for action in self._decide(instance, event):
                    work = self._perform(instance, action)
                    if work is None:
                        continue
                    task = tasks.create_task(work)
                    if isinstance(action, ProbeProcess):
                        probes.add(task)
                        task.add_done_callback(probes.discard)
        return set(probes)

    def _is_over(self) -> bool:
        return self._closing and all(isinstance(instance.state.phase, Exited) for instance in self._instances)

    async def _next_events(self) -> list[tuple[Instance, Event]]:
        deadlines = (next_deadline(instance.state) for instance in self._instances)
        try:
            async with asyncio.timeout_at(min((at for at in deadlines if at is not None), default=None)):
                return [await self._mailbox.get()]
        except TimeoutError:
            return [(instance, WokeUp()) for instance in self._instances]

    def _decide(self, instance: Instance, event: Event) -> tuple[Action, ...]:
        now = self._now()
        before = type(instance.state.phase)
        try:
            decision = decide(instance.state, event, now)
        except Exception:  # noqa: BLE001 - a fault in one decision must not take every engine down: the old state stays
            _LOG.exception("launcher_decision_failed", extra={"replica": instance.plan.replica, "event": repr(event)})
            return ()
        instance.state = decision.state
        if isinstance(event, ProcessExited) and event.attempt == instance.state.attempt:
            instance.running = None
        if type(instance.state.phase) is not before:
            self._tell(instance.view(now))
        return decision.actions

    def _tell(self, view: InstanceView) -> None:
        _LOG.info("engine_state_changed", extra={"replica": view.replica, "state": view.state, "why": view.why})
        if self._on_change is None:
            return
        try:
            self._on_change(view)
        except Exception:  # noqa: BLE001 - whoever watches must not stop what it watches
            _LOG.exception("launcher_watcher_failed", extra={"replica": view.replica})

    def _perform(self, instance: Instance, action: Action) -> Work | None:
        match action:
            case StartProcess(attempt=attempt):
                return self._start(instance, attempt)
            case ProbeProcess(attempt=attempt):
                return self._probe(instance, attempt)
            case SignalProcess(signal=signal, why=why):
                self._signal(instance, signal, why.value)
            case Register():
                spec = instance.spec()
                self._declarations.put_nowait(lambda: self._link.add_replica(spec))
            case Deregister():
                self._declarations.put_nowait(lambda: self._link.remove_replica(instance.plan.replica))
            case ReportFailure(failure=failure, retry_in_s=retry_in_s):
                fields = {"replica": instance.plan.replica, "retry_in_s": retry_in_s, "tail": failure.tail}
                _LOG.warning("engine_failed", extra={"why": explain(failure), **fields})
            case _:
                assert_never(action)
        return None

    def _start(self, instance: Instance, attempt: int) -> Work | None:
        plan = instance.plan
        try:
            instance.port = plan.port or self._host.free_port()
            argv = tuple(word.replace(PORT_PLACEHOLDER, str(instance.port)) for word in plan.argv)
            running = self._host.start(Launch(name=plan.replica, argv=argv, port=instance.port, env=plan.env))
        except CouldNotStartError as error:
            self._mailbox.put_nowait((instance, ProcessExited(attempt=attempt, code=None, tail=(str(error),))))
            return None
        instance.running = running
        self._mailbox.put_nowait((instance, ProcessStarted(attempt=attempt)))
        return self._watch(instance, attempt, running)

    def _signal(self, instance: Instance, signal: StopSignal, why: str) -> None:
        if instance.running is not None:
            _LOG.info("engine_signalled", extra={"replica": instance.plan.replica, "signal": signal.value, "why": why})
            instance.running.signal(signal)

    async def _watch(self, instance: Instance, attempt: int, running: RunningProcess) -> None:
        end = await running.ended()
        self._mailbox.put_nowait((instance, ProcessExited(attempt=attempt, code=end.code, tail=end.tail)))

    async def _probe(self, instance: Instance, attempt: int) -> None:
        running = instance.running
        answered = await answers(self._engines, instance.endpoint, instance.plan.health)
        # A port may answer for a stranger: only an answer while our own process lives counts.
        ready = answered and running is not None and running.alive
        event = ProbeSucceeded(attempt=attempt) if ready else ProbeFailed(attempt=attempt)
        self._mailbox.put_nowait((instance, event))

    async def _declare(self) -> None:
        """Tell the scheduler, one at a time and in order; a link that is away holds up nothing else."""
        while (declare := await self._declarations.get()) is not None:
            try:
                await declare()
            except Exception:  # noqa: BLE001 - the link's own faults are for people; the engines run on
                _LOG.exception("declaration_failed")

    @staticmethod
    def _now() -> Instant:
        return Instant(asyncio.get_running_loop().time())
