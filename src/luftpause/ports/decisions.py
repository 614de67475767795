"""How the runtime has a text labelled: through the LLM door, like a turn, but in no run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from luftpause.core.model.ids import CallerId, ModelName, PrincipalId
from luftpause.core.model.traces import TraceContext
from luftpause.core.model.turns import ServiceClass


class DecisionFailedError(Exception):
    """Nothing was decided. Its text is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """One text to label. No `labels`: those of the single-pass model. No `model`: the only one there is for it.

    `trace` is where whoever asks stands in a trace, None outside of any.
    """

    input: str
    principal: PrincipalId
    caller: CallerId
    service_class: ServiceClass
    labels: Sequence[str] | None = None
    model: ModelName | None = None
    trace: TraceContext | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The likeliest label, the probabilities of labels by name, and the labels that got none."""

    label: str
    probabilities: Mapping[str, float] = field(default_factory=dict[str, float])
    unscored: Sequence[str] = ()
    model: str = ""


class Decisions(Protocol):
    """Labels texts."""

    async def decide(self, request: DecisionRequest) -> Decision:
        """Have a text labelled, however long that is held. Cancelling closes the connection at once.

        Raises:
            DecisionFailedError: refused, no answer, or one that cannot be read.
        """
        ...
