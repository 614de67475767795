"""The timeline as the page and programs get it: short rows, because there are many of them.

A lane is `[number, name, kind, class, caller, model, parent]`, kind "run" or "model". A change is
`[lane, phase, at_ms, detail]`: from then on, in milliseconds since the scheduler started, the lane is in that phase.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from luftpause.core.model.ids import Instant
from luftpause.services.scheduler.phases import Change, Lane, Phase
from luftpause.services.scheduler.timeline import Timeline

Row = list[object]

TOLD_AT_ONCE_MAX: Final = 1500
"""More changes at once are told by the last one of each lane."""
FIRST_MAX: Final = 6000
"""So many changes a page that begins to look is told at most, the latest ones."""


def since_told(timeline: Timeline, after: int) -> Sequence[Change]:
    """Return what to tell whoever was told so many changes, bounded."""
    changes = timeline.changes(after)
    if len(changes) <= TOLD_AT_ONCE_MAX:
        return changes
    return list({change.lane: change for change in changes}.values())


def from_the_start(timeline: Timeline, now: Instant, back_s: float, most: int = FIRST_MAX) -> Sequence[Change]:
    """Return what to tell whoever knows nothing: the last while, and where each other lane stands."""
    recent = [change for change in timeline.changes() if now - change.at <= back_s][-most:]
    told = {change.lane for change in recent}
    began = recent[0].at if recent else now
    standing = [
        Change(lane, lane.phase, Instant(min(began, now - back_s)), lane.detail)
        for lane in timeline.followed()
        if lane not in told and lane.phase is not Phase.GONE
    ]
    return [*standing, *recent]


def lanes_of(changes: Iterable[Change]) -> list[Lane]:
    """Return the lanes that changed, each once, by number."""
    return sorted({change.lane for change in changes}, key=lambda lane: lane.number)


def lane_row(lane: Lane) -> Row:
    """Return a lane as it is told."""
    kind = "model" if lane.is_model else "run"
    return [lane.number, lane.name, kind, lane.service_class, lane.caller, lane.model, lane.parent]


def change_row(change: Change, started: Instant) -> Row:
    """Return a change as it is told; `started` is when the scheduler was."""
    return [change.lane.number, change.phase.value, round((change.at - started) * 1000), change.detail]
