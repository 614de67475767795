"""A run and its parts: one for each model that it asks, and what they come to together where a run is shown as one.

Home, phase and pause are a part's: a question to another model while a tool is out changes nothing for the first.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from immutables import Map

from luftpause.core.model.ids import ModelName, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import RunPhase
from luftpause.core.scheduling.state import Part, Run, State
from luftpause.core.scheduling.tool_history import Tools

Seen: TypeAlias = tuple[RunPhase, ServiceClass]
"""What a run is counted as."""

Counts: TypeAlias = tuple[int, ...]
"""How many runs are seen as what, in the order of `SEEN_IN_ORDER`."""

SEEN_IN_ORDER: Final[tuple[Seen, ...]] = tuple((phase, of_class) for phase in RunPhase for of_class in ServiceClass)
"""Generating before paused before idle, and of those interactive before batch."""
_RANKS: Final[dict[Seen, int]] = {seen: rank for rank, seen in enumerate(SEEN_IN_ORDER)}


def parts_of(state: State, run: RunId) -> tuple[Run, ...]:
    """Return what is known of a run with each of its models; nothing where nobody knows it."""
    return tuple(state.runs[run, model] for model in state.models_of.get(run, ()))


def seen_as(parts: Sequence[Run], one_more: Run | None = None) -> Seen | None:
    """Return what a run of these parts is counted as: the busiest speaks for all. None without any."""
    seen = [(part.phase, part.service_class) for part in parts]
    if one_more is not None:
        seen.append((one_more.phase, one_more.service_class))
    return min(seen, key=_RANKS.__getitem__, default=None)


def recounted(
    counts: Counts,
    runs: Map[Part, Run],
    models_of: Map[RunId, tuple[ModelName, ...]],
    old: Run | None,
    new: Run | None,
) -> Counts:
    """Return how many runs are seen as what when one part of a run changes."""
    before = None if old is None else (old.phase, old.service_class)
    after = None if new is None else (new.phase, new.service_class)
    if before == after:
        return counts
    part = new or old
    assert part is not None, "something changed"
    models = models_of[part.run]
    if len(models) > 1:
        others = [runs[part.run, model] for model in models if model != part.model]
        before, after = seen_as(others, old), seen_as(others, new)
    if before == after:
        return counts
    changed = list(counts)
    if before is not None:
        changed[_RANKS[before]] -= 1
    if after is not None:
        changed[_RANKS[after]] += 1
    return tuple(changed)


def followed(tools: Tools, old: Run | None, new: Run | None) -> Tools:
    """Return who is out on which tool when one part of a run changes."""
    if old is not None and old.out_on is not None:
        if new is not None and new.out_on == old.out_on and new.ended_at == old.ended_at:
            return tools
        tools = tools.back(old.out_on, old.ended_at)
    if new is not None and new.out_on is not None:
        tools = tools.left(new.out_on, new.ended_at)
    return tools
