"""The machine: a state and what happened in, the next state and what to do out.

It knows neither ports nor programs: the launcher keeps those under the attempt's number.
"""

from dataclasses import dataclass, replace
from typing import assert_never

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
from luftpause.core.processes.reasons import EndReason, Failure, FailureKind, StartReason, StopReason
from luftpause.core.processes.state import (
    PROBE_SHARE,
    WORK_SHARE,
    BackingOff,
    EngineProcess,
    Exited,
    Ready,
    Silence,
    Starting,
    Stopping,
    ready,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is so now, and what to do about it, in this order."""

    state: EngineProcess
    actions: tuple[Action, ...] = ()


def decide(state: EngineProcess, event: Event, now: Instant) -> Decision:
    """Take in one event. Events of earlier attempts change nothing."""
    match event:
        case StartRequested():
            return _start_requested(state, now)
        case StopRequested():
            return _stop_requested(state, now)
        case WokeUp():
            return _woke_up(state, now)
        case ProcessStarted() | ProcessExited() | ProbeSucceeded() | ProbeFailed() | ProgressSeen():
            if event.attempt != state.attempt:
                return Decision(state)
            return _process_event(state, event, now)
        case _:
            assert_never(event)


def next_deadline(state: EngineProcess) -> Instant | None:
    """Return when WokeUp is due; None while only events can change anything."""
    match state.phase:
        case Starting(ready_by=ready_by, spawned=spawned, probe_at=probe_at):
            if not spawned:
                return None
            return ready_by if probe_at is None else min(probe_at, ready_by)
        case Stopping(kill_at=kill_at):
            return kill_at
        case BackingOff(until=until):
            return until
        case Ready(probe_at=probe_at):
            return probe_at
        case Exited():
            return None
        case _:
            assert_never(state.phase)


def _process_event(
    state: EngineProcess,
    event: ProcessStarted | ProcessExited | ProbeSucceeded | ProbeFailed | ProgressSeen,
    now: Instant,
) -> Decision:
    match event:
        case ProcessStarted():
            return _started(state, now)
        case ProcessExited():
            return _exited(state, event, now)
        case ProbeSucceeded():
            return _probe_succeeded(state, now)
        case ProbeFailed():
            return _probe_failed(state, event, now)
        case ProgressSeen():
            return _progress_seen(state, now)
        case _:
            assert_never(event)


def _start_requested(state: EngineProcess, now: Instant) -> Decision:
    match state.phase:
        case Exited():
            return _start(replace(state, failures=0), StartReason.REQUESTED, now)
        case BackingOff():
            return _start(state, StartReason.REQUESTED, now)
        case Starting() | Ready() | Stopping():
            return Decision(state)
        case _:
            assert_never(state.phase)


def _stop_requested(state: EngineProcess, now: Instant) -> Decision:
    match state.phase:
        case Exited():
            return Decision(state)
        case BackingOff():
            stopped = _end(state, Exited(since=now, why=EndReason.STOPPED))
            return Decision(stopped.state, (*stopped.actions, ReportStopped(attempt=state.attempt)))
        case Stopping():
            phase = replace(state.phase, why=StopReason.REQUESTED)
            return _deregister(replace(state, phase=phase), EndReason.STOPPED)
        case Starting(spawned=spawned):
            return _stop(state, spawned=spawned, why=StopReason.REQUESTED, now=now)
        case Ready():
            return _stop(state, spawned=True, why=StopReason.REQUESTED, now=now)
        case _:
            assert_never(state.phase)


def _woke_up(state: EngineProcess, now: Instant) -> Decision:
    phase = state.phase
    deadline = next_deadline(state)
    if isinstance(phase, Exited) or deadline is None or now < deadline:
        return Decision(state)
    match phase:
        case Starting(ready_by=ready_by) if now >= ready_by:
            return _stop(state, spawned=True, why=StopReason.NOT_READY, now=now)
        case Starting() | Ready():
            return _probe(state, phase)
        case Stopping(why=why):
            kill = SignalProcess(attempt=state.attempt, signal=StopSignal.KILL, why=why)
            return Decision(replace(state, phase=replace(phase, kill_at=None)), (kill,))
        case BackingOff():
            return _start(state, StartReason.RESTART, now)
        case _:
            assert_never(phase)


def _started(state: EngineProcess, now: Instant) -> Decision:
    match state.phase:
        case Starting(spawned=False):
            return _probe(state, replace(state.phase, spawned=True))
        case Stopping(spawned=False, why=why):
            return _stop(state, spawned=True, why=why, now=now)
        case Starting() | Stopping() | Ready() | BackingOff() | Exited():
            return Decision(state)
        case _:
            assert_never(state.phase)


def _exited(state: EngineProcess, event: ProcessExited, now: Instant) -> Decision:
    match state.phase:
        case Stopping(why=StopReason.REQUESTED):
            stopped = _end(state, Exited(since=now, why=EndReason.STOPPED))
            return Decision(stopped.state, (*stopped.actions, ReportStopped(attempt=state.attempt)))
        case Stopping(why=StopReason.HUNG):
            kind = FailureKind.HUNG
        case Stopping():
            kind = FailureKind.NOT_READY_IN_TIME
        case Starting():
            kind = FailureKind.COULD_NOT_START if event.code is None else FailureKind.EXITED_WHILE_STARTING
        case Ready():
            kind = FailureKind.EXITED_WHILE_READY
        case BackingOff() | Exited():
            return Decision(state)
        case _:
            assert_never(state.phase)
    return _failed(state, Failure(kind=kind, code=event.code, tail=event.tail), now)


def _probe_succeeded(state: EngineProcess, now: Instant) -> Decision:
    phase = state.phase
    if not _is_probed(state):
        return Decision(state)
    if isinstance(phase, Ready):
        return Decision(replace(state, phase=ready(state.limits, since=phase.since, now=now)))
    is_up = replace(state, phase=ready(state.limits, since=now, now=now), failures=0, registered=True)
    return Decision(is_up, (Register(attempt=state.attempt),))


def _probe_failed(state: EngineProcess, event: ProbeFailed, now: Instant) -> Decision:
    if not _is_probed(state):
        return Decision(state)
    if isinstance(state.phase, Ready):
        return _stayed_silent(state, state.phase, event.worked_s, now)
    assert isinstance(state.phase, Starting), "nothing else is probed"
    limits = state.limits
    shared_s = min((now - state.phase.since) * PROBE_SHARE, limits.probe_period_s_max)
    probe_at = Instant(now + max(shared_s, limits.probe_period_s))
    return Decision(replace(state, phase=replace(state.phase, probe_at=probe_at)))


def _is_probed(state: EngineProcess) -> bool:
    """Say whether a probe is out whose answer matters."""
    match state.phase:
        case Starting(spawned=spawned, probe_at=probe_at):
            return spawned and probe_at is None
        case Ready(probe_at=probe_at):
            return state.limits.silent_s is not None and probe_at is None
        case Stopping() | BackingOff() | Exited():
            return False
        case _:
            assert_never(state.phase)


def _stayed_silent(state: EngineProcess, phase: Ready, worked_s: float | None, now: Instant) -> Decision:
    """Take in that a ready engine did not answer: one that is at work, or of which nobody can tell, may be busy."""
    limits, silence = state.limits, phase.silence
    assert limits.silent_s is not None, "else it is not probed"
    if worked_s is None:
        silence = None
    elif silence is None or worked_s - silence.worked_s > WORK_SHARE * (now - silence.since):
        silence = Silence(since=now, worked_s=worked_s)
    elif now - silence.since >= limits.silent_s:
        return _stop(state, spawned=True, why=StopReason.HUNG, now=now)
    return Decision(replace(state, phase=ready(limits, since=phase.since, now=now, silence=silence)))


def _progress_seen(state: EngineProcess, now: Instant) -> Decision:
    if not isinstance(state.phase, Starting):
        return Decision(state)
    ready_by = Instant(now + state.limits.readiness_timeout_s)
    return Decision(replace(state, phase=replace(state.phase, ready_by=ready_by)))


def _start(state: EngineProcess, why: StartReason, now: Instant) -> Decision:
    attempt = state.attempt + 1
    ready_by = Instant(now + state.limits.readiness_timeout_s)
    phase = Starting(since=now, ready_by=ready_by, spawned=False, probe_at=None)
    return Decision(replace(state, phase=phase, attempt=attempt), (StartProcess(attempt=attempt, why=why),))


def _probe(state: EngineProcess, phase: Starting | Ready) -> Decision:
    probing = replace(state, phase=replace(phase, probe_at=None))
    return Decision(probing, (ProbeProcess(attempt=state.attempt),))


def _stop(state: EngineProcess, *, spawned: bool, why: StopReason, now: Instant) -> Decision:
    kill_at = Instant(now + state.limits.stop_grace_s) if spawned else None
    stopping = replace(state, phase=Stopping(since=now, why=why, spawned=spawned, kill_at=kill_at))
    parting = _deregister(stopping, EndReason.STOPPED) if why is StopReason.REQUESTED else Decision(stopping)
    if not spawned:
        return parting
    term = SignalProcess(attempt=state.attempt, signal=StopSignal.TERM, why=why)
    return Decision(parting.state, (*parting.actions, term))


def _failed(state: EngineProcess, failure: Failure, now: Instant) -> Decision:
    failures = state.failures + 1
    if failures > len(state.limits.backoff_s):
        report = ReportFailure(attempt=state.attempt, failure=failure, retry_in_s=None)
        given_up = Exited(since=now, why=EndReason.GAVE_UP, failure=failure)
        ended = _end(replace(state, failures=failures), given_up)
        return Decision(ended.state, (report, *ended.actions))
    pause_s = state.limits.backoff_s[failures - 1]
    report = ReportFailure(attempt=state.attempt, failure=failure, retry_in_s=pause_s)
    phase = BackingOff(since=now, until=Instant(now + pause_s), failure=failure)
    return Decision(replace(state, phase=phase, failures=failures), (report,))


def _end(state: EngineProcess, phase: Exited) -> Decision:
    return _deregister(replace(state, phase=phase), phase.why)


def _deregister(state: EngineProcess, why: EndReason) -> Decision:
    if not state.registered:
        return Decision(state)
    return Decision(replace(state, registered=False), (Deregister(why=why),))
