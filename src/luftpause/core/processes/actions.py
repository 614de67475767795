"""What the process machine orders, performed by the launcher in the order given.

| action          | ends with exactly one of                                             |
| --------------- | -------------------------------------------------------------------- |
| `StartProcess`  | `ProcessStarted` and later `ProcessExited`, or `ProcessExited` alone |
| `ProbeProcess`  | `ProbeSucceeded` or `ProbeFailed`                                    |
| `SignalProcess` | nothing: the `ProcessExited` of its attempt tells of its effect      |
| `Register`      | nothing                                                              |
| `Deregister`    | nothing                                                              |
| `ReportFailure` | nothing                                                              |
| `ReportStopped` | nothing                                                              |
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from luftpause.core.processes.reasons import EndReason, Failure, StartReason, StopReason


class StopSignal(Enum):
    """How firmly a process group is asked to end."""

    TERM = "term"
    KILL = "kill"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProcess:
    """Start the engine's process. No other one of this engine is alive."""

    attempt: int
    why: StartReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProcess:
    """Ask the engine once whether it is ready."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalProcess:
    """Signal the whole process group."""

    attempt: int
    signal: StopSignal
    why: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """It is ready: declare the replica where this attempt listens. Each attempt may have another port."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deregister:
    """Take the replica away: no turn may be placed there any more."""

    why: EndReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFailure:
    """Tell people. `retry_in_s` is None when no restart follows."""

    attempt: int
    failure: Failure
    retry_in_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStopped:
    """Tell that nothing of it is left, as asked."""

    attempt: int


Action: TypeAlias = StartProcess | ProbeProcess | SignalProcess | Register | Deregister | ReportFailure | ReportStopped
