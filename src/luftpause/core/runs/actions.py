"""What a run orders, performed by the shell in the order given and only after the event behind it is durable.

| action        | ends with exactly one of                                  |
| ------------- | --------------------------------------------------------- |
| `TakeTurn`    | `TurnTaken`, `TurnFailed`, `RunFailed`, `RunCancelled`, `RunRecovered` |
| `CheckCall`   | `ToolCallIntended`, `ApprovalAsked`, `ToolCallRejected`, `RunFailed`, `RunCancelled`, `RunRecovered` |
| `CallTool`    | `ToolReturned`, `RunFailed`, `RunCancelled`, `RunRecovered` |
| `CheckAnswer` | `RunFinished`, `AnswerRejected`, `RunFailed`, `RunCancelled`, `MessageSent`, `RunRecovered` |
| `Record`      | the event that it holds                                   |
| `CancelWork`  | nothing: turns and calls under way are dropped            |
| `ReportEnd`   | nothing: the scheduler may forget the run                 |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.events import Event, Origin
from luftpause.core.runs.messages import Message
from luftpause.core.runs.tools import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeTurn:
    """Ask the model to go on from `messages`.

    Attributes:
        tools: what to offer, none when it must answer.
        max_tokens: of the reply; 0 leaves it to the engine.
        answer_schema: what the reply has to fit, where it can only be an answer.
        parent: the run that it is a child of, at this door or at the LLM door.
        origin: what spawned it, while its parent is not known.
    """

    run: RunId
    model: ModelName
    service_class: ServiceClass
    caller: CallerId
    parent: RunId | None
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    max_tokens: int
    parallel_tool_calls: bool
    answer_schema: Mapping[str, object] | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCall:
    """See whether a call can be made: a tool that the run was given, arguments that fit, and nobody to be asked."""

    run: RunId
    call: ToolCallId
    tool: str
    arguments: str
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Make a call that was found sound. `key` is the same whenever the same call is made again."""

    run: RunId
    call: ToolCallId
    tool: str
    arguments: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer:
    """See whether an answer fits the shape that was asked for."""

    run: RunId
    text: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Record what follows. It may be another run's event than the one that was decided on."""

    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelWork:
    """Drop the run's turn and tool calls under way."""

    run: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEnd:
    """Tell the scheduler that no further turn of this principal's run will come for now."""

    run: RunId
    principal: PrincipalId


Action: TypeAlias = TakeTurn | CheckCall | CallTool | CheckAnswer | Record | CancelWork | ReportEnd
