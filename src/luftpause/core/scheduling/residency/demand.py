"""Which models that are down are wanted, by whom, and who of them comes first.

Turns that wait come first: those whose room is being made already, so that no stop was in vain; then models with
interactive waiters, or with batch ones that have waited too long to be put behind; of these the one whose turn came
first. Then what operators asked for, then what is loaded ahead.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from luftpause.core.model.ids import Instant, ModelName, TurnId
from luftpause.core.scheduling.places import Place, Places, first_of
from luftpause.core.scheduling.residency.state import (
    NOBODY,
    Model,
    ModelPhase,
    Residency,
    ResidencyLimits,
)

Rank: TypeAlias = tuple[bool, int, float, int]


class Wish(NamedTuple):
    """A model that is wanted up.

    Attributes:
        rank: smaller comes first.
        turn: the waiting turn that forces it; None where no turn does.
        since: when the first of those that wait came; None where no turn waits.
        is_urgent: an interactive turn waits.
    """

    rank: Rank
    model: ModelName
    turn: TurnId | None = None
    since: float | None = None
    is_urgent: bool = False


def wish_for(
    residency: Residency, model: Model, limits: ResidencyLimits, now: Instant, *, is_served: bool
) -> Wish | None:
    """Return by whom a model is wanted that is down and may be loaded; None when by nobody.

    Args:
        residency: all models.
        model: the model.
        limits: what an operator may set.
        now: the present.
        is_served: whether a replica serves it that no launcher started: then no turn waits for a load.
    """
    waiters = NOBODY if is_served else residency.waiting.get(model.name, NOBODY)
    is_under_way = any(_makes_room_for(other, model.name) for other in residency.models.values())
    if waiters.number:
        head = _head(waiters.interactive, waiters.batch, now - limits.max_wait_s)
        oldest = min(first_of(places)[0] for places in (waiters.interactive, waiters.batch) if places)
        is_behind = not waiters.interactive and head[0] > now - limits.max_wait_s
        rank = (not is_under_way, int(is_behind), oldest, model.order)
        return Wish(rank, model.name, head[2], oldest, bool(waiters.interactive))
    if model.asked is not None and (model.not_before is None or model.not_before <= now):
        return Wish((not is_under_way, 2, model.since, model.order), model.name)
    return None


def in_order(wishes: Iterable[Wish]) -> list[Wish]:
    """Return wishes in the order in which they are tried."""
    return sorted(wishes, key=lambda wish: wish.rank)


def _head(interactive: Places, batch: Places, aged: float) -> Place:
    """Return the turn that goes first: interactive, unless a batch one has waited too long and longer."""
    if not interactive:
        return first_of(batch)
    first = first_of(interactive)
    return first_of(batch) if batch and first_of(batch)[0] <= aged and first_of(batch) < first else first


def _makes_room_for(other: Model, model: ModelName) -> bool:
    why = other.unload_why
    leaves = other.phase is ModelPhase.DRAINING or other.phase is ModelPhase.STOPPING
    return leaves and why is not None and why.room_for == model
