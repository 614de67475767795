"""The collector beside a state that changes and does not grow."""

import gc

import pytest
from immutables import Map

from luftpause.cli.serve import GC_THRESHOLDS
from luftpause.telemetry.pauses import DECISIONS_A_LOOK, ShortPauses

RUNS = 20_000
"""A map of so many has far more nodes than may be young."""


def most_looked_at(decisions: int) -> int:
    """Change one value after the other in a large map, as a service that has the collector set as it is there."""
    most = 0

    def look(phase: str, told: dict[str, int]) -> None:
        nonlocal most
        if phase == "start":
            most = max(most, sum(len(gc.get_objects(each)) for each in range(told["generation"] + 1)))

    state = Map({number: [number] for number in range(RUNS)})
    pauses = ShortPauses()
    gc.collect()
    gc.callbacks.append(look)
    try:
        for number in range(decisions):
            state = state.set(number * 7919 % RUNS, [number])
            pauses.decided()
        gc.collect(0)
    finally:
        gc.callbacks.remove(look)
    assert len(state) == RUNS
    return most


def test_a_state_that_only_changes_is_looked_at_in_small_portions() -> None:
    usual = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        looked_at = most_looked_at(40 * DECISIONS_A_LOOK)
    finally:
        gc.set_threshold(*usual)
    assert 0 < looked_at < 12 * DECISIONS_A_LOOK


def test_it_looks_once_in_so_many_decisions_and_not_at_what_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr("luftpause.telemetry.pauses.gc.collect", looks.append)
    pauses = ShortPauses()
    for _ in range(3 * DECISIONS_A_LOOK - 1):
        pauses.decided()
    assert looks == [1, 1]
