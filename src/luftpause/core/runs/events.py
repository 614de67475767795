"""What can have happened to a run: facts in the past tense, each one a record of the journal.

Any event is legal in any state: duplicates, late ones and ones about unknown or ended runs change nothing. Events
carry what was added, never a whole conversation; durations are whole milliseconds so that sums do not depend on order.
What one run means for another (a grant, an end that was waited for, a budget) becomes an event of the other run too, so
a run's conversation follows from its own events alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
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
class Limits:
    """A budget: what a run and everything below it may use. Each is None for no limit, or a positive number.

    Attributes:
        tokens: prompt and completion together.
        tool_calls: that models asked for, rejected ones included.
        seconds: of the tree's active time since the run's spawn.
    """

    tokens: int | None = None
    tool_calls: int | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exceeded:
    """Which limit of `run`'s budget was passed: `which` is `tokens`, `toolCalls` or `seconds`."""

    run: RunId
    which: str
    used: int
    limit: int

    @property
    def text(self) -> str:
        """How it is told to people and clients."""
        return f"budget exceeded: {self.which} {self.used}/{self.limit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What in a conversation of the LLM door spawned a run: the tool call, the harness's thread, or both."""

    tool_call: ToolCallId | None = None
    thread: str = ""


class ApprovalScope(Enum):
    """How far an allowed tool call reaches: this call, the same tool in this run, or in this run's whole tree."""

    ONCE = "once"
    RUN = "run"
    TREE = "tree"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpawned:
    """A run began, with all that it was given.

    Attributes:
        task: the first user message, unchanged.
        fallback_models: taken one after another, for good, when a turn cannot be had.
        tools: offered to the model, as they were at the spawn and for the run's whole life.
        max_tool_calls: after so many calls no tools are offered and the model must answer.
        max_tokens: of one reply; 0 leaves it to the engine.
        parallel_tool_calls: whether the model may ask for several calls in one reply.
        parent: the run that it is a child of.
        budget: for the run and all that is spawned below it.
        approve_tools: names of tools whose calls a person must allow, whatever their servers say.
        after: runs that must be over before this one begins.
        output_schema: JSON schema that the answer must fit.
        idempotency_key: the principal's own name for this spawn; the same key never spawns twice.
        arguments_digest: of what was asked for, to tell a repeated spawn from another one under the same key.
        traceparent: W3C trace context of the request that spawned it, empty for none.
        utc: when that was, for people, in seconds.
    """

    run: RunId
    task: str
    model: ModelName
    service_class: ServiceClass
    caller: CallerId
    principal: PrincipalId
    system: str | None = None
    fallback_models: tuple[ModelName, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    max_tool_calls: int = DEFAULT_TOOL_CALLS_MAX
    max_tokens: int = DEFAULT_REPLY_TOKENS_MAX
    parallel_tool_calls: bool = False
    parent: RunId | None = None
    budget: Limits | None = None
    approve_tools: tuple[str, ...] = ()
    after: tuple[RunId, ...] = ()
    output_schema: Mapping[str, object] | None = None
    idempotency_key: str | None = None
    arguments_digest: str = ""
    origin: Origin | None = None
    traceparent: str = ""
    utc: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsAwaited:
    """The runs that this one waits for are over. `text` tells the model how they ended."""

    run: RunId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTaken:
    """The model replied.

    Attributes:
        finish: empty where the engine gave none, as `usage` is None.
        origin_run: the run of the LLM door that the run's origin was found to be of; None where nothing new was found.
    """

    run: RunId
    message: AssistantMessage
    finish: str = ""
    usage: Usage | None = None
    took_ms: int = 0
    origin_run: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    """The turn cannot be had from the run's model, whatever was tried. `error` is for people."""

    run: RunId
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingBegun:
    """A budget is nearly spent: the next turn is the run's last one, without tools, and the model is told so."""

    run: RunId


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
class ApprovalAsked:
    """A call is sound, but a person must allow it first.

    Attributes:
        tool: the tool's long name, which grants go by.
        reason: why somebody is asked, for people.
        repeatable: as in ToolCallIntended, for the decision to allow it is the intent.
    """

    run: RunId
    call: ToolCallId
    tool: str
    reason: str
    repeatable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecided:
    """Somebody decided on a call that waited. The first decision counts; a declined call reaches no further.

    Attributes:
        by: who, for people.
        scope: how far it reaches when it was allowed.
    """

    run: RunId
    call: ToolCallId
    allow: bool
    by: str
    scope: ApprovalScope = ApprovalScope.ONCE


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
class AnswerRejected:
    """The answer does not fit the run's output schema. `complaint` says what is wrong with it."""

    run: RunId
    complaint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSent:
    """Somebody told the run more: a finished one goes on with it, another one hears it before its next turn."""

    run: RunId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecovered:
    """The runtime came back and found the run unfinished. What was under way then is not any more."""

    run: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The run ended with a result. `structured`: the result's value where the run has an output schema."""

    run: RunId
    result: str
    structured: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    """The run cannot go on. `error` is for people."""

    run: RunId
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled:
    """Somebody wanted the run to end, or a budget did. `why` is for people, `exceeded` says which budget."""

    run: RunId
    why: str
    exceeded: Exceeded | None = None


Ending: TypeAlias = RunFinished | RunFailed | RunCancelled
"""How a run ends. Only a message changes anything afterwards, and only if the run finished."""

Event: TypeAlias = (
    RunSpawned
    | RunsAwaited
    | TurnTaken
    | TurnFailed
    | LandingBegun
    | ToolCallIntended
    | ToolCallRejected
    | ApprovalAsked
    | ApprovalDecided
    | ToolReturned
    | AnswerRejected
    | MessageSent
    | RunRecovered
    | Ending
)
