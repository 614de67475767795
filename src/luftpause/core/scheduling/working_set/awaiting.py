"""The place of a run that waits for runs that it began: kept as long as the slowest of them is expected soon.

What its own tool taught is no better than a guess, since the same call waits for a short errand or for a night's work.
Who waits for a run that waits itself is far from coming back: its place goes to those who need it, and home is where it
would rather be.
"""

from typing import Final

from luftpause.core.model.ids import Instant, RunId, ToolName
from luftpause.core.scheduling.affinity import bound_to
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.state import Run
from luftpause.core.scheduling.tool_history import NOTHING_HEARD
from luftpause.core.scheduling.tool_returns import ReturnLaw, return_law
from luftpause.core.scheduling.working_set.keeping import worth_s
from luftpause.core.scheduling.working_set.trees import LOOKED_AT_MAX

AT_WORK_S: Final = 2.0
"""A child with a turn under way, or one that waits, is looked at again after this."""
FAR: Final = 1e9
NO_TOOL: Final = ToolName("")


def kept_for_children(draft: Draft, parent: Run, now: Instant) -> Instant:
    """Return until when a parent's place is kept for its children, whatever its tool taught; `now` where it is not.

    Altogether no longer than its return is worth: by then the place has cost what it could save.
    """
    limits, home = draft.limits.working_set, bound_to(draft.replicas, parent)
    if limits is None or not limits.trees or home is None:
        return now
    seconds = _expected_s(draft, parent, now)
    ends_at = parent.ended_at + worth_s(home, parent.service_class, limits)
    return Instant(now + seconds) if 0 < seconds <= ends_at - now else now


def let_go_above(draft: Draft, arrival: TurnArrived) -> bool:
    """Let the places go of those who wait for the parent of an arriving turn, where somebody waits for that room.

    Say whether there were any.
    """
    let_go = False
    parent = arrival.parent
    for waits in () if parent is None else _known(draft, parent, arrival):
        above = waits.parent if waits.paused else None
        for run in () if above is None else _known(draft, above, arrival):
            home = bound_to(draft.replicas, run)
            is_needed = home is not None and home.seat.claimed_by is not None
            if is_needed and run.kept_until is not None and not run.held:
                draft.set_run(run._replace(kept=0, kept_until=None, loose=True))
                let_go = True
    return let_go


def _known(draft: Draft, run: RunId, arrival: TurnArrived) -> list[Run]:
    parts = [draft.runs[run, model] for model in draft.models_of.get(run, ())]
    return [part for part in parts if part.principal == arrival.principal]


def _expected_s(draft: Draft, parent: Run, now: Instant) -> float:
    """Return in how many seconds the slowest child is expected to take its next step; 0 where none is awaited."""
    children = draft.children.get(parent.run)
    if children is None:
        return 0.0
    if len(children) > LOOKED_AT_MAX:
        return FAR
    laws: dict[ToolName, ReturnLaw] = {}
    slowest = 0.0
    for part in children:
        child = draft.runs[part]
        if child.principal != parent.principal:
            continue
        if not child.at_rest:
            slowest = max(slowest, AT_WORK_S)
        elif child.paused and child.run in draft.children:
            return FAR
        elif child.paused:
            tool = NO_TOOL if child.out_on is None else child.out_on
            law = laws.get(tool)
            if law is None:
                law = laws[tool] = return_law(draft.tools.histories.get(tool, NOTHING_HEARD))
            slowest = max(slowest, law.expected_return(max(0.0, now - child.ended_at)))
    return slowest
