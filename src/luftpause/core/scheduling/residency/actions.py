"""What launchers are ordered.

| action        | ends with exactly one of                                             |
| ------------- | -------------------------------------------------------------------- |
| `LoadModel`   | `ModelUp`, `LoadFailed`; a later `UnloadModel`; a `LauncherJoined`   |
| `UnloadModel` | `ModelDown`; a `LauncherJoined`                                      |
| `DropKv`      | nothing                                                              |

An `UnloadModel` may overtake a load: then the load ends with it, and `ModelDown` says that nothing of it is left.
"""

from dataclasses import dataclass

from luftpause.core.model.ids import KvFile, LauncherId, ModelName, RunId
from luftpause.core.scheduling.residency.reasons import KvDropReason, KvReason, LoadReason, UnloadWhy
from luftpause.core.scheduling.standings import Payer


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadModel:
    """Start an engine for the model. Its room is free.

    `payer`: whose turn forced it; as long as it lasts it counts as a turn of theirs in flight. None: nobody's did.
    """

    launcher: LauncherId
    model: ModelName
    why: LoadReason
    payer: Payer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KvVerdict:
    """What becomes of the KV in one slot of an engine that is to stop. `file`: where to; None: it is not kept."""

    slot: int
    run: RunId
    tokens: int
    why: KvReason
    file: KvFile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropKv:
    """Delete files with KV; one that is being written, as soon as it is."""

    launcher: LauncherId
    files: tuple[KvFile, ...]
    why: KvDropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadModel:
    """Stop the model's engine; its replica takes no turns any more.

    Attributes:
        firmly: there is something to cut short, a load or turns in flight, and that is meant; else nothing
            is in flight.
        kv: the slots that runs have there: those with a file are saved before the stop, in this order.
    """

    launcher: LauncherId
    model: ModelName
    why: UnloadWhy
    firmly: bool
    kv: tuple[KvVerdict, ...] = ()
