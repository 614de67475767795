"""What a load generator notes about its runs while they happen."""

from dataclasses import dataclass, field


class RunFailedError(Exception):
    """A run ended early: `kind` groups failures, the message says more."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSeen:
    """One finished turn: seconds from sending to its first token, and the tokens that the engine reported."""

    first_token_s: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(slots=True, kw_only=True)
class RunNotes:
    """One run as it goes: its agent adds turns, tool calls and its result, the loop the rest. Times in seconds."""

    number: int
    started_at: float
    turns: list[TurnSeen] = field(default_factory=list)
    tool_calls: int = 0
    result: str = ""
    run_s: float = 0.0
    failure: RunFailedError | None = None


@dataclass(slots=True, kw_only=True)
class Board:
    """All that happened so far, times in seconds on one clock.

    `ended` runs are over, well or not; those `under_way`, by number, are not, or were dropped when the time was over.
    """

    started_at: float | None = None
    ended_at: float | None = None
    ended: list[RunNotes] = field(default_factory=list)
    under_way: dict[int, RunNotes] = field(default_factory=dict)

    @property
    def was_begun(self) -> bool:
        """Whether any run was begun."""
        return self.started_at is not None

    def duration_s(self, now: float) -> float:
        """How long the load has taken; after its end `now` does not matter."""
        if self.started_at is None:
            return 0.0
        return (now if self.ended_at is None else self.ended_at) - self.started_at

    @property
    def failed(self) -> int:
        """How many runs ended early."""
        return sum(1 for run in self.ended if run.failure is not None)
