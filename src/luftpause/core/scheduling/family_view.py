"""Parents and their runs as people see them: a run, and what works for it, at whichever door that began."""

from dataclasses import dataclass
from heapq import nsmallest
from typing import Final, NamedTuple

from immutables import Map

from luftpause.core.model.ids import RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import RunPhase
from luftpause.core.scheduling.parts import parts_of, seen_as
from luftpause.core.scheduling.state import Part, State

FAMILIES_SHOWN: Final = 50
CHILDREN_SHOWN: Final = 50


class MemberView(NamedTuple):
    """A run. `phase` and `service_class` are None where it is not known, or was ended or forgotten."""

    run: RunId
    phase: RunPhase | None
    service_class: ServiceClass | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyView:
    """A run and those that name it as their parent, which may be the parents of others.

    Attributes:
        at_work: how many of the children have a turn held or in flight or are out on a tool: a parent that is paused
            waits for them.
        children: the first of them, those at work before the others.
        left_out: how many children are not shown.
    """

    parent: MemberView
    at_work: int
    children: tuple[MemberView, ...]
    left_out: int


def view_families(state: State) -> tuple[FamilyView, ...]:
    """Return the busiest families, FAMILIES_SHOWN at most."""
    busy = ((parent, _at_work(state, state.children[parent])) for parent in sorted(state.children))
    ranked = nsmallest(FAMILIES_SHOWN, ((-len(at_work), parent, at_work) for parent, at_work in busy))
    return tuple(_family(state, parent, at_work) for _, parent, at_work in ranked)


def _family(state: State, parent: RunId, busy: set[RunId]) -> FamilyView:
    children = {part[0] for part in state.children[parent]}
    shown = sorted(busy)[:CHILDREN_SHOWN]
    if len(shown) < CHILDREN_SHOWN:
        shown += nsmallest(CHILDREN_SHOWN - len(shown), children - busy)
    return FamilyView(
        parent=_member(state, parent),
        at_work=len(busy),
        children=tuple([_member(state, child) for child in shown]),
        left_out=len(children) - len(shown),
    )


def _at_work(state: State, parts: Map[Part, None]) -> set[RunId]:
    runs, busy = state.runs, set[RunId]()
    for part in parts:  # thousands, whenever somebody looks: a comprehension over properties takes twice as long
        run = runs[part]
        if run.turns or run.held or run.paused:
            busy.add(run.run)
    return busy


def _member(state: State, run: RunId) -> MemberView:
    models = state.models_of.get(run, ())
    if len(models) == 1:  # almost every run, and there may be thousands
        part = state.runs[run, models[0]]
        return MemberView(run, part.phase, part.service_class)
    phase, service_class = seen_as(parts_of(state, run)) or (None, None)
    return MemberView(run, phase, service_class)
