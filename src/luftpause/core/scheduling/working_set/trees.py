"""What a run's tree means for its turns: who pays for them, of which class they are, and who begins first.

A child is paid for by whoever pays for its parent, whatever it calls itself. The last one that an interactive parent
waits for is as urgent as the parent. Whoever has begun before goes first, and whoever nobody waits for any more last.
"""

from dataclasses import replace
from typing import Final

from luftpause.core.model.ids import Instant, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.state import Part, Run

BEGUN_S: Final = 60.0
"""By so much earlier counts who has begun before, and by so much later whom nobody waits for."""

LOOKED_AT_MAX: Final = 32
"""So many children of a run are looked at; of more, all count as unfinished."""


def as_in_its_tree(draft: Draft, arrival: TurnArrived) -> TurnArrived:
    """Return a turn with the caller and the class that its run's place in a tree gives it."""
    if not arrival.in_run:
        return arrival
    before = draft.run_at(arrival.part)
    parent = arrival.parent if arrival.parent is not None or before is None else before.parent
    if parent is None or parent == arrival.run:
        return arrival
    above = _parts(draft, parent, arrival)
    if not above:
        return arrival
    caller, service_class = above[0].caller, arrival.service_class
    waits = any(part.paused and part.service_class is ServiceClass.INTERACTIVE for part in above)
    if waits and service_class is ServiceClass.BATCH and not _unfinished(draft, parent, arrival.part):
        service_class = ServiceClass.INTERACTIVE
    if caller == arrival.caller and service_class is arrival.service_class:
        return arrival
    return replace(arrival, caller=caller, service_class=service_class)


def ranked_at(draft: Draft, arrival: TurnArrived, run: Run | None, arrived_at: Instant) -> Instant:
    """Return when a turn counts as arrived among those of its class and caller; one that was given back goes first."""
    if arrival.recalls > 0:
        return Instant(arrived_at - BEGUN_S)
    if run is not None and run.measure.prompt and not run.turns and run.paused:
        return Instant(arrived_at - BEGUN_S)
    if run is None or run.parent is None or arrival.service_class is not ServiceClass.BATCH:
        return arrived_at
    above = _parts(draft, run.parent, arrival)
    return arrived_at if any(part.paused for part in above) else Instant(arrived_at + BEGUN_S)


def _parts(draft: Draft, run: RunId, arrival: TurnArrived) -> list[Run]:
    """Return what is known of a parent; another principal's is none of its."""
    parts = [draft.runs[run, model] for model in draft.models_of.get(run, ())]
    return [part for part in parts if part.principal == arrival.principal]


def _unfinished(draft: Draft, parent: RunId, but: Part) -> int:
    """Return how many other children of a run are not finished."""
    children = draft.children.get(parent)
    if children is None:
        return 0
    if len(children) > LOOKED_AT_MAX:
        return len(children)
    runs = [draft.runs[part] for part in children if part != but]
    return sum(1 for run in runs if run.paused or not run.at_rest)
