"""Memory and groups: what stands in the way of a model, by arithmetic alone. Says nothing of who may be unloaded when.

Whatever is not down takes its memory: while it is loading, and until it is gone.
"""

from collections.abc import Iterator
from typing import NamedTuple

from luftpause.core.model.ids import ModelName
from luftpause.core.scheduling.residency.state import Model, ModelPhase, Residency


class Shortage(NamedTuple):
    """Why a model cannot be loaded, whatever is unloaded. All bytes.

    Attributes:
        kept: what models take that stay up.
        rival: a model that stays up and excludes it; None where memory is what is short.
    """

    need: int
    budget: int
    kept: int
    rival: ModelName | None = None


def beside(residency: Residency, wanted: Model) -> Iterator[Model]:
    """Yield the other models of a model's launcher that are not down."""
    for other in residency.models.values():
        if (
            other.phase is not ModelPhase.DOWN
            and other.launcher == wanted.launcher
            and other.spec.model != wanted.spec.model
        ):
            yield other


def excludes(wanted: Model, other: Model) -> bool:
    """Say whether a model cannot be up beside another by their groups, or sends it away by its own."""
    group, its = wanted.spec.group, other.spec.group
    if group is None:
        return False
    if its is not None and its.name == group.name:
        return group.swap
    return group.exclusive and not other.pinned and not other.spec.stays_for_others


def budget_of(residency: Residency, wanted: Model) -> int:
    """Return what all engines on the model's device may take together, bytes; 0 for a device that is not there."""
    return residency.launchers[wanted.launcher].devices.get(wanted.spec.device, 0)


def shortage(residency: Residency, wanted: Model) -> Shortage | None:
    """Return what makes a load impossible as long as those stay that are kept up; None when nothing does."""
    stays = [other for other in beside(residency, wanted) if other.stays]
    budget = budget_of(residency, wanted)
    kept = sum(other.memory for other in stays if other.spec.device == wanted.spec.device)
    rival = min((other.name for other in stays if excludes(wanted, other)), default=None)
    if rival is None and wanted.memory + kept <= budget:
        return None
    return Shortage(wanted.memory, budget, kept, rival)
