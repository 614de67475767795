"""Models that launchers can start engines for, and the memory that engines share. Names only, never a path or argv."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from luftpause.core.model.ids import DeviceId, ModelName
from luftpause.core.model.replicas import ReplicaKind, ReplicaSpec

RAM: Final = DeviceId("ram")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A memory with its budget: so many bytes all engines on it may have together."""

    device: DeviceId
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGroup:
    """Models that share a rule about memory beside its size.

    Attributes:
        swap: one of its models at a time.
        exclusive: loading one of them unloads those of other groups.
        persistent: its models are never unloaded for others.
    """

    name: str
    swap: bool = False
    exclusive: bool = False
    persistent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One entry of a launcher's catalogue.

    Attributes:
        model: its own name: what orders and replicas call it.
        aliases: further names for it.
        pattern: a regular expression; a name that it matches whole means this model too. Empty for none.
        kind: as what its engine takes turns.
        memory: what its engine is thought to take, bytes; what was measured replaces it. 0: nobody knows.
        device: where it takes that.
        group: None: memory alone decides what stays beside it.
        ttl_s: seconds from the last byte until it is unloaded; None: never for being idle.
        load_s: how long a load is thought to take, seconds; what was seen replaces it. None: guessed from its memory.
        persistent: never unloaded for others; its TTL counts all the same.
        pinned: not unloaded for others, nor for being idle, until an operator says otherwise.
        preload: loaded as soon as its launcher is there, if there is room.
        unload_at_tree_end: unloaded when a tree of runs ends and nobody else uses it.
        auto_restart: loaded again by itself after a crash, 2, 4 and 8 seconds later, then no more.
        build: differs whenever an engine started with the settings of then is not one of these settings any more.
    """

    model: ModelName
    aliases: tuple[ModelName, ...] = ()
    pattern: str = ""
    kind: ReplicaKind = ReplicaKind.GENERATIVE
    memory: int = 0
    device: DeviceId = RAM
    group: ModelGroup | None = None
    ttl_s: float | None = None
    load_s: float | None = None
    persistent: bool = False
    pinned: bool = False
    preload: bool = False
    unload_at_tree_end: bool = False
    auto_restart: bool = False
    build: str = ""

    @property
    def stays_for_others(self) -> bool:
        """Whether no other model's need unloads it."""
        return self.persistent or (self.group is not None and self.group.persistent)


class EnginePhase(Enum):
    """What an engine process of a launcher is doing. One that is gone is not told of."""

    LOADING = "loading"
    UP = "up"
    STOPPING = "stopping"

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEngine:
    """An engine that a launcher has when it joins: its inventory after a lost link.

    Attributes:
        replica: None while it is loading.
        memory: as measured, bytes; 0 while nobody has.
        build: of the settings that it was started with.
        slots: as `ModelUp` told them.
    """

    model: ModelName
    phase: EnginePhase
    replica: ReplicaSpec | None = None
    memory: int = 0
    build: str = ""
    slots: int = 0
