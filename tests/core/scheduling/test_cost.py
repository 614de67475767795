"""What decisions cost, counted in calls: as much as there is to do, however many runs there are and wait."""

import sys
from dataclasses import replace
from types import FrameType

import pytest
from benchmarks.decide import FEW_CALLERS, Loop, Size

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.actions import PlaceTurn
from luftpause.core.scheduling.decide import decide, next_deadline
from luftpause.core.scheduling.events import Event
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits

pytestmark = pytest.mark.interpreted  # what is compiled calls without being seen

STEPS = 300
SMALL = Size(runs=600, replicas=4, held=60, callers=FEW_CALLERS, each=8)
MORE = {
    "runs": replace(SMALL, runs=6000),
    "held turns": replace(SMALL, runs=1200, held=600),
    "held turns of one caller": replace(SMALL, runs=1200, held=600, callers=1),
    "callers": replace(SMALL, runs=1200, held=600, callers=600),
}
POLICIES = {"turn-admission": Limits(), "working-set": Limits(working_set=WorkingSetLimits())}


class CountedLoop(Loop):
    """Counts the calls of each decision in place of its time. `calls`: the most, by how many turns that placed."""

    def __init__(self, size: Size, limits: Limits) -> None:
        self.calls: dict[tuple[str, int], int] = {}
        super().__init__(size, limits)

    def repeat(self, event: Event) -> int:
        """Decide the same again, and return how many functions that calls."""
        calls = 0

        def hear(_frame: FrameType, what: str, _of: object) -> None:
            nonlocal calls
            calls += what in ("call", "c_call")

        sys.setprofile(hear)
        try:
            decision = decide(self.state, event, Instant(self.now))
            next_deadline(decision.state)
        finally:
            sys.setprofile(None)
        placed = sum(isinstance(action, PlaceTurn) for action in decision.actions)
        kind = type(event).__name__, placed
        self.calls[kind] = max(calls, self.calls.get(kind, 0))
        return calls


def most_calls(size: Size, limits: Limits) -> dict[tuple[str, int], int]:
    """Return how many calls decisions of each kind make at most."""
    loop = CountedLoop(size, limits)
    loop.calls.clear()
    for _ in range(STEPS):
        loop.step()
    return loop.calls


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_decision_makes_no_more_calls_where_ten_times_as_much_waits(policy: str, more: str) -> None:
    few, many = most_calls(SMALL, POLICIES[policy]), most_calls(MORE[more], POLICIES[policy])
    few.pop(("TurnsRenewed", 0), None)  # it names each turn
    grown = {kind: many[kind] / few[kind] for kind in few.keys() & many.keys()}
    assert max(grown.values()) < 2, f"{grown}: {few}, {many}"


def test_an_arrival_that_displaces_another_looks_at_each_replica_a_few_times_only() -> None:
    wide = replace(SMALL, runs=2000, replicas=40, held=300)
    few, many = most_calls(SMALL, POLICIES["working-set"]), most_calls(wide, POLICIES["working-set"])
    for_each = (many["TurnArrived", 0] - few["TurnArrived", 0]) / (wide.replicas - SMALL.replicas)
    assert for_each < 40, f"{few}, {many}"
