"""What is known of one engine process: a phase, and what outlasts the phases.

Phases with different data are different classes. A replica is registered from the first time that its engine is ready
until the engine is stopped or given up: while it restarts, its turns are held rather than refused.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from luftpause.core.model.ids import Instant
from luftpause.core.processes.reasons import EndReason, Failure, StopReason

BACKOFF_S: Final = (2.0, 4.0, 8.0)
"""Pauses before the first, second and third restart in a row; after the last one the engine is given up."""

PROBE_SHARE: Final = 0.02
"""A readiness probe follows the one before after this share of the time that the start has taken."""

PROBES_A_SILENCE: Final = 6
"""A ready engine is probed so often before its silence counts."""

WORK_SHARE: Final = 0.01
"""Who used more of one processor than this is at work, however silent: nothing but a computation takes its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How patient the machine is.

    Attributes:
        readiness_timeout_s: from the start of a process, or its last progress, until it must be ready, seconds.
        stop_grace_s: from the friendly signal to the one that cannot be ignored, seconds.
        probe_period_s: from one failed readiness probe to the next at first, seconds; later a share of the time that
            the start has taken, so that asking costs a quick start little delay and a slow one little work.
        probe_period_s_max: the longest such pause, seconds.
        backoff_s: pauses before restarts in a row, seconds; as many restarts as entries, and without any no restart.
        silent_s: an engine that was ready has failed when it answered no probe for so long, and did no work meanwhile,
            seconds; None: it is not probed any more once it was ready.
    """

    readiness_timeout_s: float
    stop_grace_s: float
    probe_period_s: float = 0.005
    probe_period_s_max: float = 0.05
    backoff_s: tuple[float, ...] = BACKOFF_S
    silent_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """A process is being started or is loading.

    Attributes:
        spawned: whether the process exists yet.
        probe_at: when to probe next; None before it exists and while a probe is out.
    """

    since: Instant
    ready_by: Instant
    spawned: bool
    probe_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """It answered no probe since then, and `worked_s` is how long it had been at work before, seconds."""

    since: Instant
    worked_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """It answered its probe.

    Attributes:
        probe_at: when to probe next; None while a probe is out, and where it is not probed any more.
        silence: how long it has answered nothing and done nothing; None while it answers, or nobody can tell.
    """

    since: Instant
    probe_at: Instant | None = None
    silence: Silence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """It is to end.

    Attributes:
        spawned: False when the stop came before the process existed: it is signalled as soon as it does.
        kill_at: when to kill it; None before it exists and after it was killed.
    """

    since: Instant
    why: StopReason
    spawned: bool
    kill_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackingOff:
    """It failed and will be started again."""

    since: Instant
    until: Instant
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """Nothing runs, and nothing will until somebody asks. `failure` is the last one, when it was given up."""

    since: Instant
    why: EndReason
    failure: Failure | None = None


Phase: TypeAlias = Starting | Ready | Stopping | BackingOff | Exited


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProcess:
    """The whole state of one engine.

    Attributes:
        attempt: number of the latest start, 0 before the first.
        failures: failures in a row; a process that became ready clears them.
        registered: whether the replica is declared.
    """

    limits: Limits
    phase: Phase
    attempt: int = 0
    failures: int = 0
    registered: bool = False


def running_already(limits: Limits, now: Instant) -> EngineProcess:
    """Return the state of an engine that an earlier launcher started, and that was just seen to be ready."""
    return EngineProcess(limits=limits, phase=ready(limits, since=now, now=now), attempt=1, registered=True)


def ready(limits: Limits, *, since: Instant, now: Instant, silence: Silence | None = None) -> Ready:
    """Return the phase of an engine that was just probed, and is ready."""
    probe_at = None
    if limits.silent_s is not None:
        probe_at = Instant(now + max(limits.silent_s / PROBES_A_SILENCE, limits.probe_period_s_max))
    return Ready(since=since, probe_at=probe_at, silence=silence)


def never_started(limits: Limits, now: Instant) -> EngineProcess:
    """Return the state of an engine that nobody has asked for yet."""
    return EngineProcess(limits=limits, phase=Exited(since=now, why=EndReason.NEVER_STARTED))
