"""What is known of models and launchers, as values. Nothing here decides.

`uses.py` keeps the indices in step, `soundness.py` proves that they equal a scan. Without a launcher all of it is
empty, and no turn pays for it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from immutables import Map

from luftpause.core.model.ids import DeviceId, Instant, LauncherId, ModelName, ReplicaId, RunId, ToolName, TurnId
from luftpause.core.model.models import ModelSpec
from luftpause.core.scheduling.places import NOWHERE, Places, number_of
from luftpause.core.scheduling.residency.kv_state import KvCosts, Parked, Slot
from luftpause.core.scheduling.residency.reasons import Blocked, LoadReason, UnloadWhy
from luftpause.core.scheduling.standings import Payer

Absence: TypeAlias = tuple[ToolName, int]
"""Runs paused on one tool since one step of PAUSE_STEP_S; the tool is empty where nobody knows it."""

PAUSE_STEP_S = 0.25
"""A pause's beginning is known no finer; it counts from its step's end."""

NO_TOOL = ToolName("")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidencyLimits:
    """What an operator may set; times in seconds.

    Attributes:
        max_wait_s: turns that wait for a model that is down longer than this are owed its load: a model in the way
            that has been up as long takes no more turns, and runs expected back keep none up any more.
        min_residency_s: a model that was loaded stays up so long, whoever needs its room.
        unknown_tool_s: a run that is out on a tool of which nothing is known is expected back in so long.
        soft_lease_s_max: so long at most a paused run counts as use of its model.
        circuit_after: after so many failures in a row a model is left alone for a while.
        circuit_s: for how long the first time; then twice as long each time.
        circuit_s_max: but no longer.
        stable_s: a crash after so long is the first one, whatever was before.
        silent_s: an engine that failed each probe for so long is started anew for turns that wait, unless one is in
            flight.
    """

    max_wait_s: float = 30.0
    min_residency_s: float = 5.0
    unknown_tool_s: float = 30.0
    soft_lease_s_max: float = 300.0
    circuit_after: int = 3
    circuit_s: float = 2.0
    circuit_s_max: float = 300.0
    stable_s: float = 60.0
    silent_s: float = 30.0


class ModelPhase(Enum):
    """What a model is up to."""

    DOWN = "down"
    LOADING = "loading"
    UP = "up"
    DRAINING = "draining"
    """Up, and takes no more turns: it is stopped, or up again, once those in flight have ended."""
    STOPPING = "stopping"

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


class Waiters(NamedTuple):
    """The turns that wait for a model, held here for whatever reason, in order of arrival."""

    interactive: Places = NOWHERE
    batch: Places = NOWHERE

    @property
    def number(self) -> int:
        """How many there are."""
        return number_of(self.interactive) + number_of(self.batch)


class Model(NamedTuple):
    """One model of a launcher's catalogue.

    Attributes:
        order: smaller was declared earlier.
        memory: what its engine takes, or is thought to take, bytes.
        is_measured: whether a launcher measured that.
        load_s: how long a load takes, seconds: as seen, else as declared, else guessed.
        is_timed: whether a load was seen.
        since: when its phase began.
        load_why: why it is loading, or was loaded last; None where nobody knows.
        fraction: how far its load is, 0 to 1.
        payer: whom the load that is under way is charged to.
        replica: what it answers as while it is up or draining.
        up_since: when it was ready last.
        used_at: when the last turn on it ended; when it was ready, before the first.
        unload_why: why it is draining or stopping.
        build: of the settings that its engine was started with.
        asked: why it is to be up although no turn waits for it; None once it was, or failed.
        not_before: what it was asked for is left alone until then.
        pinned: stays up until an operator says otherwise.
        failures: failed loads and crashes in a row; once it is ready, those crashes alone.
        crashes: those in a row of which each came soon after it was ready.
        failed_why: what the last of them was, for people.
        closed_until: it is left alone until then, and turns for it are refused.
        is_retrying: its last load ran out of memory, and the next one has more.
        tree: the root of the run whose turn it took last.
        is_released: that tree has ended.
        is_dropped: its launcher declares it no longer: it goes as soon as it is down.
        blocked: what its load waits for, as far as it is wanted; None while nothing is in its way.
        kv: what its KV costs.
    """

    spec: ModelSpec
    launcher: LauncherId
    order: int
    memory: int
    load_s: float
    phase: ModelPhase = ModelPhase.DOWN
    since: Instant = Instant(0.0)
    is_measured: bool = False
    is_timed: bool = False
    load_why: LoadReason | None = None
    fraction: float = 0.0
    payer: Payer | None = None
    replica: ReplicaId | None = None
    up_since: Instant = Instant(0.0)
    used_at: Instant = Instant(0.0)
    unload_why: UnloadWhy | None = None
    build: str = ""
    asked: LoadReason | None = None
    not_before: Instant | None = None
    pinned: bool = False
    failures: int = 0
    crashes: int = 0
    failed_why: str = ""
    closed_until: Instant | None = None
    is_retrying: bool = False
    tree: RunId | None = None
    is_released: bool = False
    is_dropped: bool = False
    blocked: Blocked | None = None
    kv: KvCosts = KvCosts()

    @property
    def name(self) -> ModelName:
        """What it is called."""
        return self.spec.model

    @property
    def is_serving(self) -> bool:
        """Whether its replica is declared."""
        return self.phase is ModelPhase.UP or self.phase is ModelPhase.DRAINING

    @property
    def stays(self) -> bool:
        """Whether it is up, or about to be, and no other model's need unloads it."""
        is_up = self.phase is not ModelPhase.DOWN and self.phase is not ModelPhase.STOPPING
        return is_up and (self.pinned or self.spec.stays_for_others)


class Launcher(NamedTuple):
    """A launcher.

    Attributes:
        devices: the budget of each of its memories, bytes.
        parking: what all files with KV may take together, bytes; 0: it keeps none.
        is_ending: what it declares no longer goes with it.
    """

    connected: bool
    devices: Map[DeviceId, int]
    parking: int = 0
    is_ending: bool = False


class Residency(NamedTuple):
    """All models. Facts first, then the indices over them and over what waits and pauses.

    Attributes:
        of_replica: the model that each replica of a launcher serves, while it is declared.
        waiting: the turns that wait for each model.
        paused: the runs at rest that are out on a tool, by the model that they will ask, and how many.
        slots: those of each model that is up and told how many it has.
        adrift: turns in flight of these models for which the engine chose the slot.
        parked: the KV that is kept for each model, by run.
        is_pressed: a model that is wanted has no room yet, or one drains: what is used, and by whom, matters now.
        look_at: when to look at all models next though nothing happens; None when time alone changes nothing.
    """

    launchers: Map[LauncherId, Launcher] = Map()
    models: Map[ModelName, Model] = Map()
    of_replica: Map[ReplicaId, ModelName] = Map()
    waiting: Map[ModelName, Waiters] = Map()
    paused: Map[ModelName, Map[Absence, int]] = Map()
    slots: Map[ModelName, tuple[Slot, ...]] = Map()
    adrift: Map[ModelName, tuple[TurnId, ...]] = Map()
    parked: Map[ModelName, Map[RunId, Parked]] = Map()
    is_pressed: bool = False
    look_at: Instant | None = None


NOBODY = Waiters()
"""Who waits for a model that nobody waits for."""
