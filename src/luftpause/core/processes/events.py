"""What can have happened to an engine process, as its launcher learns it: facts in the past tense.

`attempt` numbers the starts of one engine. An event of an earlier attempt changes nothing, and any event is legal in
any state.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequested:
    """Somebody wants the engine to run. While it is being stopped this changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested:
    """Somebody wants it not to run: it ends, and does not come back by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStarted:
    """The process exists. It is not ready yet."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExited:
    """The process and all its children are gone, or it never came to be.

    Attributes:
        code: exit status, negative for the signal that ended it; None when it could not be started.
        tail: the last lines it wrote, oldest first; why it could not be started when there was no process.
    """

    attempt: int
    code: int | None
    tail: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSucceeded:
    """The engine answered its health probe, and the process was still alive afterwards."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFailed:
    """The engine did not answer its health probe, or not with a 200.

    Attributes:
        worked_s: processor time that its processes have taken since they began, seconds; None where nobody can tell.
    """

    attempt: int
    worked_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSeen:
    """Its load got further. Whoever tells this sees to it that a load can get further only so often."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WokeUp:
    """A deadline passed. Extra ones are harmless."""


Event: TypeAlias = (
    StartRequested
    | StopRequested
    | ProcessStarted
    | ProcessExited
    | ProbeSucceeded
    | ProbeFailed
    | ProgressSeen
    | WokeUp
)
