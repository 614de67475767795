"""Keeps engine processes: one mailbox, one consumer: take an event, decide, perform.

What takes time runs in tasks of its own, each of which ends by putting one event back. How one process lives is decided
in `core/processes`; which processes are wanted is not its business.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final, Protocol, TypeAlias, assert_never

from luftpause.core.model.ids import Instant, ReplicaId
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
    ProbeFailed,
    ProbeSucceeded,
    ProcessExited,
    ProcessStarted,
    ProgressSeen,
    StartRequested,
    StopRequested,
    WokeUp,
)
from luftpause.core.processes.reasons import Failure
from luftpause.core.processes.state import Exited, Limits, Ready, never_started, running_already
from luftpause.ports.engines import Engines
from luftpause.ports.processes import (
    CouldNotStartError,
    Launch,
    LeftBehind,
    MemoryMeter,
    ProcessHost,
    RunningProcess,
)
from luftpause.services.launcher.command_lines import with_port
from luftpause.services.launcher.instance import Instance, InstanceView
from luftpause.services.launcher.loading import LoadProgress
from luftpause.services.launcher.planning import EnginePlan, launch_of
from luftpause.services.launcher.readiness import OK, status_of

_LOG = logging.getLogger("luftpause.launcher")
Work: TypeAlias = Coroutine[None, None, None]
_CLOSE_MARGIN_S: Final = 5.0
"""Past the grace: a killed group is gone within milliseconds."""
_LOOK_S: Final = 0.5
"""Between two looks at how far a load is."""
_PORT_TRIES: Final = 3


class EngineWatcher(Protocol):
    """Who is told what becomes of engines. Calls come from the event loop and must not wait."""

    def engine_ready(self, instance: Instance) -> None:
        """It is ready, where this attempt listens."""
        ...

    def engine_progressed(self, instance: Instance) -> None:
        """Its load got further."""
        ...

    def engine_withdrawn(self, instance: Instance) -> None:
        """No turn may be placed on it any more."""
        ...

    def engine_ended(self, instance: Instance, failure: Failure | None, retry_in_s: float | None) -> None:
        """Nothing of it is left: it failed, or was stopped as asked (None). `retry_in_s`: it is started again then."""
        ...


class EngineKeeper:
    """Starts, watches and ends engine processes.

    Args:
        host: what processes run on.
        engines: how their health is asked.
        meter: what they take.
        stop_grace_s: what each may take to end before it is killed, seconds.
        on_change: called in the event loop whenever an engine goes from one state to another.
    """

    def __init__(
        self,
        host: ProcessHost,
        engines: Engines,
        meter: MemoryMeter,
        *,
        stop_grace_s: float,
        on_change: Callable[[InstanceView], None] | None = None,
    ) -> None:
        self._host = host
        self._engines = engines
        self._meter = meter
        self._stop_grace_s = stop_grace_s
        self._on_change = on_change
        self._watcher: EngineWatcher | None = None
        self._instances: dict[ReplicaId, Instance] = {}
        self._mailbox: asyncio.Queue[tuple[Instance, Event] | None] = asyncio.Queue()
        self._owner: asyncio.Task[None] | None = None
        self._closing = False

    def start(self, watcher: EngineWatcher) -> None:
        """Begin. Once only."""
        assert self._owner is None, "started twice"
        self._watcher = watcher
        self._owner = asyncio.create_task(self._run(), name="launcher")

    async def close(self) -> None:
        """Stop every engine and wait until all of their process groups are gone; kill what outlasts the grace."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        self._closing = True
        for instance in self._instances.values():
            self._mailbox.put_nowait((instance, StopRequested()))
        self._mailbox.put_nowait(None)
        # A fault of its own it has logged itself; its engines are killed then.
        _, overdue = await asyncio.wait({owner}, timeout=self._stop_grace_s + _CLOSE_MARGIN_S)
        if overdue:
            _LOG.error("launcher_close_overdue", extra={"grace_s": self._stop_grace_s})
            owner.cancel()
        await asyncio.gather(owner, return_exceptions=True)

    def want(self, plan: EnginePlan, *, backoff_s: tuple[float, ...]) -> Instance:
        """Have an engine started; one of that name that runs is left as it is. `backoff_s`: pauses before restarts."""
        instance = self._instances.get(plan.replica)
        if instance is None or isinstance(instance.state.phase, Exited):
            state = never_started(self._limits(plan, backoff_s), self._now())
            instance = self._instances[plan.replica] = Instance(plan=plan, state=state)
        if not self._closing:
            self._mailbox.put_nowait((instance, StartRequested()))
        return instance

    def adopt(self, plan: EnginePlan, behind: LeftBehind, *, backoff_s: tuple[float, ...]) -> Instance:
        """Take over an engine that an earlier launcher left and that is ready. Only before the start."""
        assert self._owner is None, "it would not be watched"
        state = running_already(self._limits(plan, backoff_s), self._now())
        instance = Instance(plan=plan, state=state, port=behind.port, running=behind.adopt())
        self._instances[plan.replica] = instance
        return instance

    def give_grace(self, seconds: float) -> None:
        """Let engines that are started from now on take so long to end."""
        self._stop_grace_s = seconds

    def unwant(self, instance: Instance) -> None:
        """Have an engine stopped."""
        self._mailbox.put_nowait((instance, StopRequested()))

    def snapshot(self) -> tuple[InstanceView, ...]:
        """Return every engine that was ever wanted as it is now."""
        now = self._now()
        return tuple(instance.view(now) for instance in self._instances.values())

    def _limits(self, plan: EnginePlan, backoff_s: tuple[float, ...]) -> Limits:
        return Limits(
            readiness_timeout_s=plan.readiness_timeout_s,
            stop_grace_s=self._stop_grace_s,
            backoff_s=backoff_s,
            silent_s=plan.silent_s,
        )

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                probes = await self._consume(tasks)
                for probe in probes:
                    probe.cancel()
        except Exception:
            _LOG.exception("launcher_failed")
            raise
        finally:
            # Nothing to do in an orderly end; after a fault or a cancellation no engine may be left behind.
            for instance in self._instances.values():
                if instance.running is not None:
                    instance.running.signal(StopSignal.KILL)

    async def _consume(self, tasks: asyncio.TaskGroup) -> set[asyncio.Task[None]]:
        probes: set[asyncio.Task[None]] = set()
        for instance in self._instances.values():
            if instance.running is not None:  # adopted
                tasks.create_task(self._watch(instance, instance.state.attempt, instance.running))
                self._tell(instance.view(self._now()))
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
        is_done = self._closing and self._mailbox.empty()
        return is_done and all(isinstance(each.state.phase, Exited) for each in self._instances.values())

    async def _next_events(self) -> list[tuple[Instance, Event]]:
        deadlines = (next_deadline(instance.state) for instance in self._instances.values())
        try:
            async with asyncio.timeout_at(min((at for at in deadlines if at is not None), default=None)):
                first = await self._mailbox.get()
                return [] if first is None else [first]
        except TimeoutError:
            return [(instance, WokeUp()) for instance in self._instances.values()]

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
        watcher = self._watcher
        assert watcher is not None
        match action:
            case StartProcess(attempt=attempt):
                return self._start(instance, attempt)
            case ProbeProcess(attempt=attempt):
                return self._probe(instance, attempt)
            case SignalProcess(signal=signal, why=why):
                return self._signal(instance, signal, why.value)
            case Register():
                watcher.engine_ready(instance)
            case Deregister():
                watcher.engine_withdrawn(instance)
            case ReportFailure(failure=failure, retry_in_s=retry_in_s):
                watcher.engine_ended(instance, failure, retry_in_s)
            case ReportStopped():
                watcher.engine_ended(instance, None, None)
            case _:
                assert_never(action)
        return None

    def _start(self, instance: Instance, attempt: int) -> Work | None:
        try:
            running = self._spawn(instance)
        except CouldNotStartError as error:
            self._mailbox.put_nowait((instance, ProcessExited(attempt=attempt, code=None, tail=(str(error),))))
            return None
        instance.running = running
        instance.progress = LoadProgress(instance.plan.memory)
        instance.log_seen = self._host.lines(instance.plan.replica, 0).next
        self._mailbox.put_nowait((instance, ProcessStarted(attempt=attempt)))
        return self._watch(instance, attempt, running)

    def _spawn(self, instance: Instance) -> RunningProcess:
        """Start the process on its port, or on another free one where the first was taken meanwhile.

        Raises:
            CouldNotStartError: it did not start.
        """
        plan = instance.plan
        fault = next((found for file in plan.files if (found := file.fault())), "")
        if fault:
            raise CouldNotStartError(fault)
        tries = 1 if plan.port else _PORT_TRIES
        while True:
            tries -= 1
            instance.port = plan.port or self._host.free_port(plan.host)
            try:
                return self._host.start(launch_of(plan, instance.port))
            except CouldNotStartError as error:
                if not tries or not error.port_taken:
                    raise

    def _signal(self, instance: Instance, signal: StopSignal, why: str) -> Work | None:
        running = instance.running
        if running is None:
            return None
        _LOG.info("engine_signalled", extra={"replica": instance.plan.replica, "signal": signal.value, "why": why})
        if signal is StopSignal.TERM and instance.plan.stop_argv:
            return self._stop_by_command(instance.plan, instance.port, running)
        running.signal(signal)
        return None

    async def _stop_by_command(self, plan: EnginePlan, port: int, running: RunningProcess) -> None:
        """Run what ends the engine; a signal stands in for a command that fails. The kill at the grace comes anyhow."""
        try:
            command = self._host.start(
                Launch(name=f"{plan.replica}-stop", argv=with_port(plan.stop_argv, port), env=plan.env)
            )
        except CouldNotStartError as error:
            _LOG.warning("stop_command_failed", extra={"replica": plan.replica, "why": str(error)})
            running.signal(StopSignal.TERM)
            return
        try:
            async with asyncio.timeout(self._stop_grace_s):
                end = await command.ended()
        except TimeoutError:
            command.signal(StopSignal.KILL)
            return
        if end.code != 0:
            _LOG.warning("stop_command_failed", extra={"replica": plan.replica, "tail": end.tail[-3:]})
            running.signal(StopSignal.TERM)

    async def _watch(self, instance: Instance, attempt: int, running: RunningProcess) -> None:
        end = await running.ended()
        self._mailbox.put_nowait((instance, ProcessExited(attempt=attempt, code=end.code, tail=end.tail)))

    async def _probe(self, instance: Instance, attempt: int) -> None:
        plan, running, port = instance.plan, instance.running, instance.port
        status = await status_of(self._engines, instance.endpoint, plan.health)
        # A port may answer for a stranger: only an answer while our own process lives, and is who listens, counts.
        # What a command of its own stops need not be a child of ours, a container for one.
        ready = status == OK and running is not None and running.alive
        if ready and running is not None and not plan.stop_argv:
            ready = await asyncio.to_thread(running.listens_on, port) is not False and running.alive
        worked_s = None
        if not ready and running is not None:
            if not isinstance(instance.state.phase, Ready):
                await self._look(instance, attempt, running)
            elif not status:
                worked_s = await asyncio.to_thread(_worked_s, plan, running, port)
        event = ProbeSucceeded(attempt=attempt) if ready else ProbeFailed(attempt=attempt, worked_s=worked_s)
        self._mailbox.put_nowait((instance, event))

    async def _look(self, instance: Instance, attempt: int, running: RunningProcess) -> None:
        """See how far the load is, now and then."""
        now = self._now()
        if now < instance.looked_at + _LOOK_S:
            return
        instance.looked_at = now
        held = await asyncio.to_thread(self._meter.taken, running.pid, instance.plan.device)
        written = self._host.lines(instance.plan.replica, instance.log_seen)
        instance.log_seen = written.next
        if instance.progress.further(written.lines, held):
            self._mailbox.put_nowait((instance, ProgressSeen(attempt=attempt)))
            assert self._watcher is not None
            self._watcher.engine_progressed(instance)

    @staticmethod
    def _now() -> Instant:
        return Instant(asyncio.get_running_loop().time())


def _worked_s(plan: EnginePlan, running: RunningProcess, port: int) -> float | None:
    """Return how long an engine has been at work; None where it may do its work in processes that are none of ours."""
    return running.worked_s() if not plan.stop_argv and running.listens_on(port) else None
