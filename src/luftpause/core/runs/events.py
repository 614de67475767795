"""What can have happened to a run: facts in the past tense, each one a record of the journal.

Any event is legal in any state: duplicates, late ones and ones about unknown or ended runs change nothing. Events
carry what was added, never a whole conversation; durations are whole milliseconds so that sums do not depend on order.
"""

from dataclasses import dataclass
from typing import TypeAlias

from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.messages import AssistantMessage
from luftpause.core.runs.tools import ToolSpec

DEFAULT_TOOL_CALLS_MAX = 8
"""Tool calls that a run may ask for unless its spawn says otherwise."""

DEFAULT_REPLY_TOKENS_MAX = 256
"""Tokens of one reply unless the spawn says otherwise; 0 leaves the length to the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpawned:
    """A run began, with all that it was given.

    Attributes:
        task: the first user message, unchanged.
        tools: offered to the model, as they were at the spawn and for the run's whole life.
        max_tool_calls: after so many calls no tools are offered and the model must answer.
        max_tokens: of one reply; 0 leaves it to the engine.
        parallel_tool_calls: whether the model may ask for several calls in one reply.
        parent: the run that it is a child of.
    """

    run: RunId
    task: str
    model: ModelName
    service_class: ServiceClass
    caller: CallerId
    principal: PrincipalId
    system: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    max_tool_calls: int = DEFAULT_TOOL_CALLS_MAX
    max_tokens: int = DEFAULT_REPLY_TOKENS_MAX
    parallel_tool_calls: bool = False
    parent: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTaken:
    """The model replied. `usage` is None and `finish` empty where the engine gave none."""

    run: RunId
    message: AssistantMessage
    finish: str = ""
    usage: Usage | None = None
    took_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallIntended:
    """A call is sound and is about to be made. `repeatable`: making it twice does what making it once does."""

    run: RunId
    call: ToolCallId
    repeatable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRejected:
    """A call was not made: no such tool, or arguments that do not fit. `text` tells the model what would."""

    run: RunId
    call: ToolCallId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """A call that was made ended. `outcome_unknown`: it broke off, and may have taken effect."""

    run: RunId
    call: ToolCallId
    text: str
    failed: bool = False
    outcome_unknown: bool = False
    took_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecovered:
    """The runtime came back and found the run unfinished. What was under way then is not any more."""

    run: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The run ended with a result."""

    run: RunId
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    """The run cannot go on. `error` is for people."""

    run: RunId
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled:
    """Somebody wanted the run to end. `why` is for people."""

    run: RunId
    why: str


Ending: TypeAlias = RunFinished | RunFailed | RunCancelled
"""The last event of a run; nothing changes it afterwards."""

Event: TypeAlias = RunSpawned | TurnTaken | ToolCallIntended | ToolCallRejected | ToolReturned | RunRecovered | Ending
