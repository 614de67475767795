"""Looking at many runs without holding up everybody else: one moment's state, and its views made a few at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.state import State
from luftpause.core.runs.view import RunView, view

T = TypeVar("T")
AT_ONCE: Final = 50
"""Views that are made in one step of the event loop: about a millisecond of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """How some runs stood at one moment. States never change, so their views can be made later.

    Attributes:
        chosen: the runs, each with what its tree's clock showed.
        left_out: how many more there were.
    """

    state: State
    chosen: tuple[tuple[RunId, ActiveMs], ...]
    left_out: int

    def views(self) -> tuple[RunView, ...]:
        """Return the views of all of them, at once."""
        return tuple(view(self.state, run, now) for run, now in self.chosen)

    async def each(self, shown: Callable[[RunView], T]) -> list[T]:
        """Return what `shown` makes of each view; others get their turn in between."""
        done: list[T] = []
        for place, (run, now) in enumerate(self.chosen, start=1):
            done.append(shown(view(self.state, run, now)))
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)
        return done
