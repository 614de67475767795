"""An account of models, kept from events and orders alone: is each load and unload lawful, and is none missing?

Written from the rules, without the core's code. It raises at the first order that loads a model twice, overfills a
memory, cuts a turn in flight for another model, stops what is to stay, or leaves the waiters of a failed load waiting.
Its launchers do as they are told and report each end of an order once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from luftpause.core.model.ids import DeviceId, LauncherId, ModelName, ReplicaId, TurnId
from luftpause.core.model.models import ModelSpec
from luftpause.core.scheduling.actions import Action, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import (
    Event,
    PeerLost,
    PeerResynced,
    TurnAbandoned,
    TurnArrived,
    TurnFailed,
    TurnFinished,
    TurnReturned,
)
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import (
    LauncherJoined,
    LauncherLost,
    LoadFailed,
    ModelDown,
    ModelUp,
    PinAsked,
)
from luftpause.core.scheduling.residency.reasons import UnloadReason
from luftpause.core.scheduling.residency.state import ResidencyLimits

ROUNDING_S = 1e-6
CUTTING = (UnloadReason.ASKED, UnloadReason.NAME_TAKEN, UnloadReason.CHANGED)
"""What may cut turns in flight."""


@dataclass(slots=True)
class Engine:
    """An engine from its order on until it is gone. `memory`: what it is planned with, or was measured to take."""

    launcher: LauncherId
    memory: int
    phase: str = "loading"
    replica: ReplicaId | None = None
    up_at: float = 0.0


@dataclass(slots=True)
class Box:
    """A launcher: what it may load, and with how much memory together."""

    connected: bool
    budgets: dict[DeviceId, int]
    catalogue: dict[ModelName, ModelSpec] = field(default_factory=dict)


class ModelAccount:
    """Tell it every event with the orders that it led to. `loads` counts what was ordered, by model."""

    def __init__(self, limits: ResidencyLimits) -> None:
        self.limits = limits
        self.loads: dict[ModelName, int] = {}
        self.engines: dict[ModelName, Engine] = {}
        self.waiting: dict[TurnId, tuple[ModelName, float]] = {}
        self._boxes: dict[LauncherId, Box] = {}
        self._measured: dict[ModelName, int] = {}
        self._pinned: set[ModelName] = set()
        self._flying: dict[TurnId, ReplicaId] = {}

    def take(self, event: Event, now: float, actions: Sequence[Action]) -> None:
        """Take in an event and judge what was ordered.

        Raises:
            AssertionError: something is wrong; the message says what.
        """
        self._take_in(event, now)
        for action in actions:
            self._judge(action, event, now)
        if isinstance(event, LoadFailed) and not event.out_of_memory:
            left = [turn for turn, (model, _) in self.waiting.items() if model == event.model]
            assert not left, f"{event.model} could not be loaded, and {left} wait on"

    def oldest_wait_s(self, now: float) -> float:
        """Return for how long the turn that came first has waited for a model; 0 without any."""
        return max((now - since for _, since in self.waiting.values()), default=0.0)

    def _take_in(self, event: Event, now: float) -> None:
        match event:
            case TurnFinished() | TurnFailed() | TurnAbandoned() | TurnReturned():
                self._flying.pop(event.turn, None)
                self.waiting.pop(event.turn, None)
            case LauncherJoined():
                self._join(event)
            case LauncherLost():
                self._boxes[event.launcher].connected = False
            case ModelUp():
                self._come_up(event, now)
            case LoadFailed() | ModelDown():
                self.engines.pop(event.model, None)
            case PinAsked():
                (self._pinned.add if event.on else self._pinned.discard)(event.model)
            case PeerLost() | PeerResynced():
                raise AssertionError("this account knows one dataplane that stays")
            case _:
                pass

    def _join(self, event: LauncherJoined) -> None:
        budgets = {device.device: device.memory for device in event.devices}
        self._boxes[event.launcher] = Box(True, budgets, {spec.model: spec for spec in event.catalogue})
        held = {engine.model: engine for engine in event.engines}
        for name in [name for name, engine in self.engines.items() if engine.launcher == event.launcher]:
            if name not in held:
                del self.engines[name]

    def _come_up(self, event: ModelUp, now: float) -> None:
        engine = self.engines[event.model]
        if engine.phase == "stopping":
            return
        engine.phase, engine.replica, engine.up_at = "up", event.replica.replica, now
        if event.memory:
            engine.memory = self._measured[event.model] = event.memory

    def _judge(self, action: Action, event: Event, now: float) -> None:
        match action:
            case LoadModel():
                self._judge_load(action)
            case UnloadModel():
                self._judge_unload(action, now)
            case PlaceTurn(turn=turn, replica=replica):
                self.waiting.pop(turn, None)
                self._flying[turn] = replica
                up = [engine.replica for engine in self.engines.values() if engine.phase == "up"]
                assert replica in up, f"{turn} goes to {replica}, and up are {up}"
            case HoldTurn(turn=turn):
                if isinstance(event, TurnArrived):
                    self.waiting.setdefault(turn, (event.model, now))
            case RefuseTurn(turn=turn):
                self.waiting.pop(turn, None)
            case _:
                pass

    def _judge_load(self, order: LoadModel) -> None:
        name, box = order.model, self._boxes[order.launcher]
        assert name not in self.engines, f"{name} is loaded, and is {self.engines[name].phase} already"
        assert box.connected, f"{name} is loaded by {order.launcher}, which is away"
        spec = box.catalogue[name]
        memory = self._measured.get(name, spec.memory)
        beside = [
            engine.memory
            for other, engine in self.engines.items()
            if engine.launcher == order.launcher and box.catalogue[other].device == spec.device
        ]
        budget = box.budgets[spec.device]
        assert sum(beside) + memory <= budget, f"{name} takes {memory} beside {beside}, and the budget is {budget}"
        self.engines[name] = Engine(order.launcher, memory)
        self.loads[name] = self.loads.get(name, 0) + 1

    def _judge_unload(self, order: UnloadModel, now: float) -> None:
        name, engine = order.model, self.engines[order.model]
        assert engine.phase != "stopping", f"{name} is stopped twice"
        assert self._boxes[order.launcher].connected, f"{name} is stopped by {order.launcher}, which is away"
        flying = [turn for turn, replica in self._flying.items() if replica == engine.replica]
        cuts = bool(flying) or engine.phase == "loading"
        assert order.firmly is cuts, f"{name} is stopped{' firmly' if order.firmly else ''} with {flying} in flight"
        if flying:
            assert order.why.reason in CUTTING, f"{name} is stopped with {flying} in flight: {order.why}"
        if order.why.reason is UnloadReason.MAKES_ROOM:
            spec = self._boxes[order.launcher].catalogue[name]
            assert name not in self._pinned, f"{name} is pinned, and stopped for {order.why.room_for}"
            assert not spec.stays_for_others, f"{name} is persistent, and stopped for {order.why.room_for}"
            age_s = now - engine.up_at
            fresh = engine.phase == "up" and age_s < self.limits.min_residency_s - ROUNDING_S
            assert not fresh, f"{name} was up for {age_s} s, and is stopped for {order.why.room_for}"
        engine.phase = "stopping"
