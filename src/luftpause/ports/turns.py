"""How the runtime takes a model turn: through the LLM door, like any other agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, RunId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.events import Origin
from luftpause.core.runs.messages import AssistantMessage, Message
from luftpause.core.runs.tools import ToolSpec


class TurnFailedError(Exception):
    """The turn cannot be had, whatever was tried. Its text is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One turn of a principal's run.

    Attributes:
        tools: to choose from; without any it must answer.
        max_tokens: of the reply; 0 leaves its length to the engine.
        answer_schema: JSON schema that the reply should be held to, where the engine can.
        parent: the run that it is a child of, at either door.
        approve_tools: names of the tools whose calls a person must allow first.
        origin: what of the LLM door spawned it, where its parent is not known: the door may know.
        traceparent: W3C trace context that the turn belongs to, empty for none.
    """

    run: RunId
    parent: RunId | None
    principal: PrincipalId
    caller: CallerId
    service_class: ServiceClass
    model: ModelName
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int = 0
    parallel_tool_calls: bool = False
    answer_schema: Mapping[str, object] | None = None
    traceparent: str = ""
    approve_tools: Sequence[str] = ()
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReply:
    """The whole reply. `finish` is empty and `usage` None where the engine gave none.

    `parent` is the run that the LLM door took as the parent, None where it knows none.
    """

    message: AssistantMessage
    finish: str = ""
    usage: Usage | None = None
    parent: RunId | None = None


class Turns(Protocol):
    """Takes turns."""

    async def take(self, request: TurnRequest) -> TurnReply:
        """Take a turn, however long it is held. Cancelling closes the connection at once.

        Raises:
            TurnFailedError: refused for good, failing again and again, or nobody to be reached for the turn timeout.
        """
        ...

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        """Say that no further turn of a principal's run will come. Failing is logged, never raised."""
        ...
