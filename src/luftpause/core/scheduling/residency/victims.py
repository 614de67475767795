"""Which models to unload so that there is room for another: the cheapest set. Knows figures only."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from luftpause.core.model.ids import ModelName

EXHAUSTIVE_MAX: Final = 12
"""Among so many the cheapest set is found for certain; among more, one that is good."""


class Candidate(NamedTuple):
    """A model that may be unloaded: what that costs, and how many bytes it frees."""

    cost: float
    model: ModelName
    frees: int


def cheapest(candidates: Sequence[Candidate], needed: int) -> tuple[ModelName, ...] | None:
    """Return the cheapest set that frees so many bytes, in order of cost; None when all together do not.

    Of sets that cost the same the smallest is taken, then the first by name. Nobody is in it without need.
    """
    if needed <= 0:
        return ()
    useful = sorted(candidate for candidate in candidates if candidate.frees > 0)
    if sum(candidate.frees for candidate in useful) < needed:
        return None
    if len(useful) > EXHAUSTIVE_MAX:
        return _greedy(useful, needed)
    return _Search(useful).best(needed)


class _Search:
    """All sets, but for those that cannot become the best."""

    def __init__(self, useful: Sequence[Candidate]) -> None:
        self._useful = useful
        self._rest = [sum(each.frees for each in useful[at:]) for at in range(len(useful) + 1)]
        self._best: tuple[float, int, tuple[ModelName, ...]] | None = None

    def best(self, needed: int) -> tuple[ModelName, ...] | None:
        self._go_on(0, needed, 0.0, ())
        return None if self._best is None else self._best[2]

    def _go_on(self, at: int, needed: int, cost: float, chosen: tuple[ModelName, ...]) -> None:
        if needed <= 0:
            rank = (cost, len(chosen), chosen)
            if self._best is None or rank < self._best:
                self._best = rank
            return
        if self._rest[at] < needed or (self._best is not None and cost > self._best[0]):
            return
        candidate = self._useful[at]
        self._go_on(at + 1, needed - candidate.frees, cost + candidate.cost, (*chosen, candidate.model))
        self._go_on(at + 1, needed, cost, chosen)


def _greedy(useful: Sequence[Candidate], needed: int) -> tuple[ModelName, ...]:
    """Take those that cost least for each byte until it is enough, then leave out who is not needed, dearest first."""
    taken: list[Candidate] = []
    for candidate in sorted(useful, key=lambda each: (each.cost / each.frees, each)):
        if needed <= 0:
            break
        taken.append(candidate)
        needed -= candidate.frees
    for candidate in sorted(taken, reverse=True):
        if needed + candidate.frees <= 0:
            taken.remove(candidate)
            needed += candidate.frees
    return tuple(candidate.model for candidate in sorted(taken))
