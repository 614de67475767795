"""What launchers and operators report about models: facts in the past tense.

Any event is legal in any state, as with all others of the scheduler. One about a model that no launcher declared, or
that contradicts what is known, changes nothing. But what ends an order is told once: told again, it ends the next one.
"""

from dataclasses import dataclass
from typing import TypeAlias

from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.model.models import Device, HeldEngine, ModelSpec
from luftpause.core.model.parked_kv import SavedKv
from luftpause.core.model.replicas import ReplicaSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherJoined:
    """A launcher (re)connected, or read its settings anew, and told all that it has.

    What it was ordered and does not name in `engines` is over. A model of another launcher that is connected stays
    with that one.

    Attributes:
        devices: its memories; a model on another one cannot be loaded.
        engines: its processes, those that are being stopped included.
        parking: what all files with KV may take together, bytes; 0: it keeps none.
        kv: the files that it has.
        is_ending: it takes its models along, for good or until it is started again.
    """

    launcher: LauncherId
    devices: tuple[Device, ...]
    catalogue: tuple[ModelSpec, ...]
    engines: tuple[HeldEngine, ...] = ()
    parking: int = 0
    kv: tuple[SavedKv, ...] = ()
    is_ending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherLost:
    """Its link broke. What it runs goes on to run and keeps its replicas; nothing is ordered until it is back."""

    launcher: LauncherId


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProgressed:
    """A load got further. `fraction`: 0 to 1."""

    model: ModelName
    fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUp:
    """A load ended well: the engine is ready, and takes turns from this moment on.

    Attributes:
        replica: where it answers. Its name is the launcher's to choose and nobody else's; of its `models` only this
            one counts.
        memory: what it took, bytes, as measured; 0 where nobody has.
        slots: how many it has whose KV can be saved; 0: none, and it chooses where its turns go.
    """

    model: ModelName
    replica: ReplicaSpec
    memory: int = 0
    slots: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFailed:
    """A load ended badly, and nothing of it is left.

    Attributes:
        cause: one sentence without its full stop, for people.
        tail: the last lines that the engine wrote, oldest first.
        out_of_memory: it said, or looks as if, memory was short.
    """

    model: ModelName
    cause: str
    tail: tuple[str, ...] = ()
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDown:
    """An engine is gone and its memory free: as ordered, or unasked (a crash).

    Attributes:
        why: for people.
        kv: what was saved before, of what was ordered.
        prefill_s: what a token of a prompt cost it on average, seconds; 0 where it did not say.
    """

    model: ModelName
    why: str = ""
    kv: tuple[SavedKv, ...] = ()
    prefill_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAsked:
    """An operator wants a model up. Whoever is used stays all the same."""

    model: ModelName


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadAsked:
    """An operator wants a model down.

    Attributes:
        firmly: at once, whatever is in flight; else once that has ended.
        keep_waiting: turns that wait for the model go on to wait, and have it loaded again; else they are refused.
    """

    model: ModelName
    firmly: bool = False
    keep_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PinAsked:
    """An operator wants a model kept up once it is up, or says that this is no longer wanted."""

    model: ModelName
    on: bool


AboutModel: TypeAlias = LoadProgressed | ModelUp | LoadFailed | ModelDown | LoadAsked | UnloadAsked | PinAsked
"""What is reported of one model."""

ModelReport: TypeAlias = LauncherJoined | LauncherLost | AboutModel
