"""What launchers are ordered.

| action        | ends with exactly one of                                             |
| ------------- | -------------------------------------------------------------------- |
| `LoadModel`   | `ModelUp`, `LoadFailed`; a later `UnloadModel`; a `LauncherJoined`   |
| `UnloadModel` | `ModelDown`; a `LauncherJoined`                                      |

An `UnloadModel` may overtake a load: then the load ends with it, and `ModelDown` says that nothing of it is left.
"""

from dataclasses import dataclass

from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.scheduling.residency.reasons import LoadWhy, UnloadWhy


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadModel:
    """Start an engine for the model. Its room is free."""

    launcher: LauncherId
    model: ModelName
    why: LoadWhy


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadModel:
    """Stop the model's engine; its replica takes no turns any more.

    `firmly`: there is something to cut short, a load or turns in flight, and that is meant; else nothing is in flight.
    """

    launcher: LauncherId
    model: ModelName
    why: UnloadWhy
    firmly: bool
