"""Why an engine process was started, stopped or given up, and how each is said in a sentence."""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never


class StartReason(Enum):
    """Why a process is started."""

    REQUESTED = "asked to start"
    RESTART = "restarted after a failure"


class StopReason(Enum):
    """Why a process is signalled."""

    REQUESTED = "asked to stop"
    NOT_READY = "was not ready in time"
    HUNG = "answered no probe any more and did nothing"


class EndReason(Enum):
    """Why nothing runs and nothing will, until somebody asks."""

    NEVER_STARTED = "never started"
    STOPPED = "stopped as asked"
    GAVE_UP = "failed, and no restart is left"


class FailureKind(Enum):
    """In which of its phases a process failed."""

    COULD_NOT_START = "could not be started"
    EXITED_WHILE_STARTING = "ended before it was ready"
    NOT_READY_IN_TIME = "was not ready in time"
    EXITED_WHILE_READY = "ended while it served"
    HUNG = "hung: it answered no probe any more, did nothing, and was ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failure of one process.

    Attributes:
        code: its exit status, negative for the signal that ended it; None when there was no process.
        tail: the last lines it wrote, oldest first.
    """

    kind: FailureKind
    code: int | None
    tail: tuple[str, ...]


def explain(failure: Failure) -> str:
    """Return the failure as one sentence without its full stop; the last line of output is the likeliest cause."""
    last = failure.tail[-1] if failure.tail else ""
    match failure.kind:
        case FailureKind.COULD_NOT_START | FailureKind.NOT_READY_IN_TIME | FailureKind.HUNG:
            status = ""
        case FailureKind.EXITED_WHILE_STARTING | FailureKind.EXITED_WHILE_READY:
            status = f" ({_status(failure.code)})"
        case _:
            assert_never(failure.kind)
    return f"{failure.kind.value}{status}" + (f": {last}" if last else "")


def _status(code: int | None) -> str:
    if code is None:
        return "exit status unknown"
    return f"signal {-code}" if code < 0 else f"exit status {code}"
