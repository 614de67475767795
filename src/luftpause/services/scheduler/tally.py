"""What the scheduler counts of its decisions, as plain arithmetic: one is counted for every event."""

from collections.abc import Sequence
from enum import Enum
from typing import Final, TypeAlias

from luftpause.core.model.ids import ModelName
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.scheduling.actions import Action, HoldTurn, PlaceTurn, RecallTurn, RefuseTurn
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel
from luftpause.telemetry.tallies import Tally

DECIDE_SECONDS_BUCKETS: Final[Sequence[float]] = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.1)

Why: TypeAlias = Enum | type
"""What an order was given for: a member of an enum, or the class of a reason."""


class DecisionTally:
    """What was counted so far.

    Attributes:
        seconds: decisions by how long they took.
        orders: the orders given, by kind.
        reasons: those that have a reason, by kind and by reason.
        loads: orders to load, by model.
        unloads: orders to unload, by model and reason.
        tokens: of turns that ended, by class and by kind.
        cut: answers that were cut off at our cap, by class.
        faults: events on which deciding failed.
    """

    def __init__(self) -> None:
        self.seconds = Tally(DECIDE_SECONDS_BUCKETS)
        self.orders: dict[type[Action], int] = {}
        self.reasons: dict[type[Action], dict[Why, int]] = {}
        self.loads: dict[ModelName, int] = {}
        self.unloads: dict[tuple[ModelName, Enum], int] = {}
        self.tokens: dict[ServiceClass, dict[str, int]] = {}
        self.cut = dict.fromkeys(ServiceClass, 0)
        self.faults = 0

    def decided(self, seconds: float, actions: Sequence[Action]) -> None:
        """Count one decision."""
        self.seconds.add(seconds)
        if not actions:
            return
        for action in actions:
            kind = type(action)
            self.orders[kind] = self.orders.get(kind, 0) + 1
            why = self._why(action)
            if why is not None:
                reasons = self.reasons.get(kind)
                if reasons is None:
                    reasons = self.reasons[kind] = {}
                reasons[why] = reasons.get(why, 0) + 1

    def used(self, service_class: ServiceClass, usage: Usage, *, is_cut: bool = False) -> None:
        """Count the tokens of a turn that ended, and whether its answer was cut off at our cap."""
        if is_cut:
            self.cut[service_class] += 1
        spent = self.tokens.get(service_class)
        if spent is None:
            spent = self.tokens[service_class] = {}
        cached = usage.cached_tokens
        if cached is None:
            _add(spent, "prompt_unknown", usage.prompt_tokens)
        else:
            _add(spent, "prompt_cached", cached)
            _add(spent, "prompt_computed", max(0, usage.prompt_tokens - cached))
        _add(spent, "completion", usage.completion_tokens)

    def _why(self, action: Action) -> Why | None:
        """Return what an order was given for, and count what is counted by model."""
        if isinstance(action, PlaceTurn):
            return action.why
        if isinstance(action, HoldTurn):
            return type(action.why)
        if isinstance(action, RefuseTurn):
            return action.why.reason
        if isinstance(action, LoadModel):
            self.loads[action.model] = self.loads.get(action.model, 0) + 1
            return action.why
        if isinstance(action, UnloadModel):
            reason = action.why.reason
            self.unloads[action.model, reason] = self.unloads.get((action.model, reason), 0) + 1
            return reason
        return action.why if isinstance(action, (DropKv, RecallTurn)) else None


def _add(spent: dict[str, int], kind: str, tokens: int) -> None:
    spent[kind] = spent.get(kind, 0) + tokens
