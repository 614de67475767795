"""A run and its parts: one for each model that it asks, and what they come to together where a run is shown as one.

Home, phase and pause are a part's: a question to another model while a tool is out changes nothing for the first.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from immutables import Map

from luftpause.core.model.ids import RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import RunPhase
from luftpause.core.scheduling.state import Run, State

Seen: TypeAlias = tuple[RunPhase, ServiceClass]
"""What a run is counted as."""

_RANKS: Final[dict[Seen, int]] = {
    seen: rank for rank, seen in enumerate((phase, of_class) for phase in RunPhase for of_class in ServiceClass)
}
"""Generating before paused before idle, and of those interactive before batch."""


def parts_of(state: State, run: RunId) -> tuple[Run, ...]:
    """Return what is known of a run with each of its models; nothing where nobody knows it."""
    return tuple(state.runs[run, model] for model in state.models_of.get(run, ()))


def seen_as(parts: Sequence[Run], one_more: Run | None = None) -> Seen | None:
    """Return what a run of these parts is counted as: the busiest speaks for all. None without any."""
    seen = [(part.phase, part.service_class) for part in parts]
    if one_more is not None:
        seen.append((one_more.phase, one_more.service_class))
    return min(seen, key=_RANKS.__getitem__, default=None)


def counted(counts: Map[Seen, int], seen: Seen | None, change: int) -> Map[Seen, int]:
    """Return how many runs are seen as what when one more or less is seen so."""
    if seen is None:
        return counts
    total = counts.get(seen, 0) + change
    return counts.set(seen, total) if total else counts.delete(seen)
