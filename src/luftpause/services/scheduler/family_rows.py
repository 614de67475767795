"""Families as programs see them, with what they have cost. They are by far the most that is shown of a busy state.

Knows who looks neither at them nor at anything else.
"""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from luftpause.core.model.ids import Instant
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import RunPhase
from luftpause.core.scheduling.family_view import FamilyView, MemberView, view_families
from luftpause.core.scheduling.state import State
from luftpause.services.scheduler.models_json import Json
from luftpause.services.scheduler.timeline import Timeline

COSTLY_S: Final = 0.0005
"""A look that took less is never kept: whoever asks sees all that happened before."""
RESTS: Final = 50
"""One that took longer is good for so many times as long: a fiftieth of a core looks, however many ask."""
KEPT_S_MAX: Final = 1.0

_PHASES: Final[dict[RunPhase | None, str | None]] = {None: None, **{phase: phase.value for phase in RunPhase}}
_CLASSES: Final[dict[ServiceClass | None, str | None]] = {None: None, **{each: each.value for each in ServiceClass}}
"""A member's `value` takes ten times as long, and families have a thousand members."""


class Costs(Struct, frozen=True, gc=False):
    """What runs have cost."""

    turns: int
    prompt_tokens: int
    completion_tokens: int


class Member(Struct, frozen=True, gc=False, rename={"service_class": "class"}):
    """A run of a family. A struct and no dict: there are a thousand."""

    run: str
    phase: str | None
    service_class: str | None
    own: Costs


class _Kept(NamedTuple):
    seen_at: Instant
    good_s: float
    rows: list[Json]


class FamilyRows:
    """Looks at families, at most as often as that is worth it. Several threads may ask."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._kept: _Kept | None = None

    def rows(self, state: State, now: Instant) -> list[Json]:
        """Return a row for each family; they may be those of a moment ago, KEPT_S_MAX at most."""
        kept = self._kept
        if kept is not None and kept.seen_at <= now < kept.seen_at + kept.good_s:
            return kept.rows
        began = time.thread_time()
        rows = [self._row(family, state) for family in view_families(state)]
        took_s = time.thread_time() - began
        good_s = min(KEPT_S_MAX, took_s * RESTS) if took_s >= COSTLY_S else 0.0
        self._kept = _Kept(now, good_s, rows)
        return rows

    def _row(self, family: FamilyView, state: State) -> Json:
        (parent,) = self._members((family.parent,))
        return {
            "run": parent.run,
            "phase": parent.phase,
            "class": parent.service_class,
            "own": parent.own,
            "at_work": family.at_work,
            "subtree": Costs(*self._timeline.spent_below(state, family.parent.run)),
            "children": self._members(family.children),
            "omitted": family.left_out,
        }

    def _members(self, members: Sequence[MemberView]) -> list[Member]:
        spent = self._timeline.spent
        return [
            Member(member.run, _PHASES[member.phase], _CLASSES[member.service_class], Costs(*spent(member.run)))
            for member in members
        ]
