"""What is known of all runs: nouns only. Phases that hold different things are different classes."""

from dataclasses import dataclass, field
from typing import TypeAlias

from immutables import Map

from luftpause.core.model.ids import Instant, RunId
from luftpause.core.runs.events import RunSpawned
from luftpause.core.runs.messages import Message, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Work done, in whole numbers. Failed calls are among the calls."""

    turns: int = 0
    tool_calls: int = 0
    failed_tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    turn_ms: int = 0
    tool_ms: int = 0

    def plus(self, more: "Totals") -> "Totals":
        """Return the sum of both."""
        return Totals(
            turns=self.turns + more.turns,
            tool_calls=self.tool_calls + more.tool_calls,
            failed_tool_calls=self.failed_tool_calls + more.failed_tool_calls,
            prompt_tokens=self.prompt_tokens + more.prompt_tokens,
            completion_tokens=self.completion_tokens + more.completion_tokens,
            turn_ms=self.turn_ms + more.turn_ms,
            tool_ms=self.tool_ms + more.tool_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCall:
    """The model asked for it; whether it can be made is not known yet."""

    asked: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """It was found sound and is under way, or was when the runtime went down."""

    asked: ToolCall
    repeatable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledCall:
    """It has its answer, good or bad."""

    asked: ToolCall
    text: str


Call: TypeAlias = ProposedCall | OpenCall | SettledCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Generating:
    """The model has the word."""

    since: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class CallingTools:
    """Paused on the calls of its last reply, in the reply's order; at least one is not settled."""

    since: Instant
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluding:
    """The model gave its answer; that the run ended is not on record yet."""

    since: Instant
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """It ended with a result."""

    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It ended without one."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """It was ended."""

    why: str


Phase: TypeAlias = Generating | CallingTools | Concluding | Finished | Failed | Cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run.

    Attributes:
        tree: the root of the tree it belongs to, itself when it has no parent.
        messages: the conversation so far; empty once the run has ended, for its journal has it.
        own: the run's own work; `subtree` adds that of all its descendants.
        children: in the order of their spawns.
    """

    spawn: RunSpawned
    tree: RunId
    phase: Phase
    messages: tuple[Message, ...]
    own: Totals = Totals()
    subtree: Totals = Totals()
    children: tuple[RunId, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether nothing changes it any more."""
        return isinstance(self.phase, Finished | Failed | Cancelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All runs of a runtime. `running` counts those that are not over."""

    runs: Map[RunId, Run] = field(default_factory=Map[RunId, Run])
    running: int = 0
