"""What launchers are ordered.

| action        | ends with exactly one of                                             |
| ------------- | -------------------------------------------------------------------- |
| `LoadModel`   | `ModelUp`, `LoadFailed`; a later `UnloadModel`; a `LauncherJoined`   |
| `UnloadModel` | `ModelDown`; a `LauncherJoined`                                      |

An `UnloadModel` may overtake a load: then the load ends with it, and `ModelDown` says that nothing of it is left.
"""

from dataclasses import dataclass

from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.scheduling.residency.reasons import LoadReason, UnloadWhy
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
class UnloadModel:
    """Stop the model's engine; its replica takes no turns any more.

    `firmly`: there is something to cut short, a load or turns in flight, and that is meant; else nothing is in flight.
    """

    launcher: LauncherId
    model: ModelName
    why: UnloadWhy
    firmly: bool
