"""The rows of the book: replicas, runs and turns as the rules see them. Plain values, without a rule."""

from dataclasses import dataclass, field

from luftpause.core.model.ids import CallerId, PrincipalId, ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.replicas import Load, ReplicaSpec
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import TurnArrived
from luftpause.testkit.sim.narrow import Narrow


@dataclass(slots=True)
class Site:
    """A replica. `life` changes whenever what its engine had cached must be taken for lost.

    `narrow` tells how it is held back after an outage or a refusal, None while it is not. `foreign` is what its engine
    has of others, as far as two reports agree: `surplus` is what the last one had beyond `peak`, the most of our turns
    since the one before, and None before the first one of a life; it came at `heard_at`. `read`: tokens of prompts that
    its engine counted last; `memory`: what it said that it has, in tokens.
    """

    spec: ReplicaSpec | None
    life: int
    declared: bool = True
    healthy: bool = False
    load: Load | None = None
    flying: int = 0
    closed_until: float | None = None
    was_well: bool = False
    narrow: Narrow | None = None
    peak: int = 0
    surplus: int | None = None
    foreign: int = 0
    heard_at: float | None = None
    read: int | None = None
    memory: int | None = None

    @property
    def most(self) -> int | None:
        """How many of our turns its engine may have by its own report; None while it queues none."""
        load = self.load
        return None if load is None or load.waiting <= 0 else max(1, load.running)

    @property
    def takes_turns(self) -> bool:
        """Whether anything may go there at all."""
        return self.declared and self.healthy

    def serves(self, offer: TurnArrived) -> bool:
        """Whether it is declared for the turn's kind and model."""
        spec = self.spec
        return self.declared and spec is not None and spec.kind is offer.kind and offer.model in spec.models


@dataclass(slots=True)
class Life:
    """A run with one model: how many of its turns fly and wait, and what the one that ended last left behind."""

    service_class: ServiceClass
    principal: PrincipalId
    caller: CallerId
    rested_at: float
    paused: bool = False
    replied: bool = False
    home: ReplicaId | None = None
    home_life: int = -1
    flying: int = 0
    waiting: int = 0


@dataclass(slots=True)
class Waiting:
    """A turn that is held."""

    offer: TurnArrived
    arrived_at: float
    number: int
    seen_at: float


@dataclass(slots=True)
class Flight:
    """A turn in flight.

    `in_run`: its end still changes its run. `bars_batch`: while the engine queues, no batch turn goes there before this
    one's first token. `spoke`: its first token was told. `asked_back`: it was recalled.
    """

    offer: TurnArrived
    replica: ReplicaId
    in_run: bool
    seen_at: float
    bars_batch: bool = False
    spoke: bool = False
    asked_back: bool = False


@dataclass(slots=True)
class Due:
    """What must be ordered because of an event, besides placements."""

    refusals: dict[TurnId, RefusalReason] = field(default_factory=dict)
    forgets: list[RunId] = field(default_factory=list)
