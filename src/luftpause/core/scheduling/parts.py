"""A run and its parts: one for each model that it asks, and what they come to together where a run is shown as one.

Home, phase and pause are a part's: a question to another model while a tool is out changes nothing for the first.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from immutables import Map

from luftpause.core.model.ids import ModelName, ReplicaId, RunId, TurnId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import RunPhase
from luftpause.core.scheduling.state import Part, Run, State, without
from luftpause.core.scheduling.tool_history import Tools

Seen: TypeAlias = tuple[RunPhase, ServiceClass]
"""What a run is counted as."""

Counts: TypeAlias = tuple[int, ...]
"""How many runs are seen as what, in the order of `SEEN_IN_ORDER`."""

SEEN_IN_ORDER: Final[tuple[Seen, ...]] = tuple((phase, of_class) for phase in RunPhase for of_class in ServiceClass)
"""Generating before paused before idle, and of those interactive before batch."""
_RANKS: Final[dict[Seen, int]] = {seen: rank for rank, seen in enumerate(SEEN_IN_ORDER)}
_NOT_SEEN: Final = len(SEEN_IN_ORDER)
_BATCH: Final = ServiceClass.BATCH


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
    before, after = _rank_of(old), _rank_of(new)
    if before == after:
        return counts
    part = new or old
    assert part is not None, "something changed"
    models = models_of[part.run]
    if len(models) > 1:
        others = min(_rank_of(runs[part.run, model]) for model in models if model != part.model)
        before, after = min(before, others), min(after, others)
    if before == after:
        return counts
    changed = list(counts)
    if before < _NOT_SEEN:
        changed[before] = changed[before] - 1  # in place, it would be boxed
    if after < _NOT_SEEN:
        changed[after] = changed[after] + 1
    return tuple(changed)


def _rank_of(run: Run | None) -> int:
    """Return where in `SEEN_IN_ORDER` stands what a run with one model is seen as; behind all of it for None."""
    if run is None:
        return _NOT_SEEN
    return (0 if run.turns else 2 if run.paused else 4) + (run.service_class is _BATCH)


def at_work(run: Run, turn: TurnId, home: ReplicaId | None, epoch: int) -> Run:
    """Return a run with a turn in flight, at home there: it is out on no tool, and no place is kept for it."""
    return run._replace(
        home=home,
        home_epoch=epoch,
        turns=(*run.turns, turn),
        held=without(run.held, turn),
        replied=False,
        out_on=None,
        kept=0,
        kept_until=None,
        loose=False,
    )


def followed(tools: Tools, old: Run | None, new: Run | None) -> Tools:
    """Return who is out on which tool when one part of a run changes."""
    if old is not None and old.out_on is not None:
        if new is not None and new.out_on == old.out_on and new.ended_at == old.ended_at:
            return tools
        tools = tools.back(old.out_on, old.ended_at)
    if new is not None and new.out_on is not None:
        tools = tools.left(new.out_on, new.ended_at)
    return tools
