"""What is said in a run, apart from any wire format: the conversation as typed values.

Arguments of tool calls stay the text that the model wrote; nobody here parses them.
"""

from dataclasses import dataclass
from typing import TypeAlias

from luftpause.core.model.ids import ToolCallId


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    """Standing instructions, before everything else."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What the run was asked to do."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call as the model asked for it.

    Attributes:
        arguments: its own text, JSON if the model behaved.
        recovered_from: the way in which the model wrote the call as text, empty for one that the engine told of.
        cut: the reply ended in the middle of it, so it must not be made.
    """

    call: ToolCallId
    tool: str
    arguments: str
    recovered_from: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """A model's reply. The ids of its calls differ from each other."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """What a tool call gave, as the model is told it."""

    call: ToolCallId
    text: str


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage
