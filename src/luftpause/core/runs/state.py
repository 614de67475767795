"""What is known of all runs: nouns only. Phases that hold different things are different classes."""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from immutables import Map

from luftpause.core.model.ids import ActiveMs, ModelName, PrincipalId, RunId
from luftpause.core.runs.events import Exceeded, RunSpawned
from luftpause.core.runs.messages import Message, ToolCall

_START: Final = ActiveMs(0)


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

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

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
class PendingCall:
    """It was found sound and waits for somebody to allow it. `tool`: its long name, which grants go by."""

    asked: ToolCall
    tool: str
    reason: str
    repeatable: bool
    since: ActiveMs


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


Call: TypeAlias = ProposedCall | PendingCall | OpenCall | SettledCall


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForRuns:
    """It begins once the runs that it comes after are over."""

    since: ActiveMs


@dataclass(frozen=True, slots=True, kw_only=True)
class Generating:
    """The model has the word."""

    since: ActiveMs


@dataclass(frozen=True, slots=True, kw_only=True)
class CallingTools:
    """Paused on the calls of its last reply, in the reply's order; at least one is not settled."""

    since: ActiveMs
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluding:
    """The model gave its answer; that it is good and that the run ended is not on record yet."""

    since: ActiveMs
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """It cannot go on; that it ended is not on record yet."""

    since: ActiveMs
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """It ended with a result; a message makes it go on."""

    result: str
    structured: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It ended without one."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """It was ended, by a budget if `exceeded` says which."""

    why: str
    exceeded: Exceeded | None = None


_OVER: Final = (Finished, Failed, Cancelled)
Phase: TypeAlias = WaitingForRuns | Generating | CallingTools | Concluding | Failing | Finished | Failed | Cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run.

    Attributes:
        tree: the root of the tree it belongs to, itself when it has no parent.
        messages: the conversation so far; may be left out once the run has ended, for its journal has it.
        unheard: messages that were sent and that no turn has been told yet.
        own: the run's own work; `subtree` adds that of all its descendants.
        children: in the order of their spawns.
        began: when it was spawned, on its tree's clock.
        ended: when the last run of its subtree ended so far.
        open_runs: how many runs of its subtree are not over, itself included.
        models_failed: how many of its models failed it for good.
        calls_before: own tool calls before the last message that made it go on: its allowance counts from there.
        follow_ups: messages that made it go on after it had finished.
        landing: the next turn, or the one under way, is the last for now.
        repaired: its answer was sent back once.
        grants: long names of the tools that may be called in this run without asking.
        origin_run: the run of the LLM door whose tool call or thread spawned it, once that was found.
    """

    spawn: RunSpawned
    tree: RunId
    phase: Phase
    messages: tuple[Message, ...]
    unheard: tuple[str, ...] = ()
    own: Totals = Totals()
    subtree: Totals = Totals()
    children: tuple[RunId, ...] = ()
    began: ActiveMs
    ended: ActiveMs = _START
    open_runs: int = 0
    models_failed: int = 0
    calls_before: int = 0
    follow_ups: int = 0
    landing: bool = False
    repaired: bool = False
    grants: frozenset[str] = frozenset()
    origin_run: RunId | None = None

    @property
    def is_over(self) -> bool:
        """Whether it does nothing any more, unless it finished and is sent a message."""
        return isinstance(self.phase, _OVER)

    @property
    def model(self) -> ModelName:
        """The model of its next turn."""
        return (self.spawn.model, *self.spawn.fallback_models)[self.models_failed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What a tree shares.

    Attributes:
        grants: long names of the tools that all its runs may call without asking.
        timed: its runs that have a limit of seconds.
    """

    grants: frozenset[str] = frozenset()
    timed: frozenset[RunId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All runs of a runtime.

    Attributes:
        running: how many are not over.
        trees: by root; those that share nothing are left out.
        waiting: by the run waited for, over or not: the runs in WaitingForRuns that come after it.
        keys: the run that each idempotency key of a principal spawned.
    """

    runs: Map[RunId, Run] = field(default_factory=Map[RunId, Run])
    running: int = 0
    trees: Map[RunId, Tree] = field(default_factory=Map[RunId, Tree])
    waiting: Map[RunId, frozenset[RunId]] = field(default_factory=Map[RunId, frozenset[RunId]])
    keys: Map[tuple[PrincipalId, str], RunId] = field(default_factory=Map[tuple[PrincipalId, str], RunId])
