"""What a run orders, performed by the shell in the order given and only after the event behind it is durable.

| action       | ends with exactly one of                                  |
| ------------ | --------------------------------------------------------- |
| `TakeTurn`   | `TurnTaken`, `RunFailed`, `RunCancelled`, `RunRecovered`  |
| `CheckCall`  | `ToolCallIntended`, `ToolCallRejected`, `RunCancelled`, `RunRecovered` |
| `CallTool`   | `ToolReturned`, `RunCancelled`, `RunRecovered`            |
| `EndRun`     | the `RunFinished`, `RunFailed` or `RunCancelled` it holds |
| `CancelWork` | nothing: turns and calls under way are dropped            |
| `ReportEnd`  | nothing: the scheduler may forget the run                 |
"""

from dataclasses import dataclass
from typing import TypeAlias

from luftpause.core.model.ids import CallerId, ModelName, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.events import Ending
from luftpause.core.runs.messages import Message
from luftpause.core.runs.tools import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeTurn:
    """Ask the model to go on from `messages`. `tools`: what to offer, none when it must answer."""

    run: RunId
    model: ModelName
    service_class: ServiceClass
    caller: CallerId
    parent: RunId | None
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    max_tokens: int
    parallel_tool_calls: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCall:
    """See whether a call can be made: a tool that the run was given, arguments that fit its schema."""

    run: RunId
    call: ToolCallId
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Make a call that was found sound. `key` is the same whenever the same call is made again."""

    run: RunId
    call: ToolCallId
    tool: str
    arguments: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRun:
    """Record this ending. It may be another run's than the one that was decided on: a descendant's."""

    ending: Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelWork:
    """Drop the run's turn and tool calls under way."""

    run: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEnd:
    """Tell the scheduler that no further turn of this run will come."""

    run: RunId


Action: TypeAlias = TakeTurn | CheckCall | CallTool | EndRun | CancelWork | ReportEnd
