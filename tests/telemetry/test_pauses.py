"""The collector beside a state that changes and does not grow."""

import asyncio
import contextlib
import gc
import sys
import weakref
from collections import deque
from collections.abc import Iterator

import pytest
from immutables import Map

from luftpause.telemetry.pauses import (
    BYTES_A_RUN,
    DECISIONS_A_LOOK,
    FEW_RUNS,
    GROWN_BYTES,
    LOOKS_A_REST,
    THRESHOLDS,
    ShortPauses,
)

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
            pauses.decided(len(state))
        gc.collect(0)
    finally:
        gc.callbacks.remove(look)
    assert len(state) == RUNS
    return most


def test_a_state_that_only_changes_is_looked_at_in_small_portions() -> None:
    usual = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
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
        pauses.decided(RUNS)
    assert looks == [1, 1]


def test_beside_few_runs_it_never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr("luftpause.telemetry.pauses.gc.collect", looks.append)
    pauses = ShortPauses()
    for _ in range(2 * DECISIONS_A_LOOK):
        pauses.decided(FEW_RUNS)
    assert not looks


class Knot:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


@contextlib.contextmanager
def whole_looks() -> Iterator[list[int]]:
    """Tell of every look at everything, with how many objects it found."""
    found: list[int] = []

    def hear(phase: str, told: dict[str, int]) -> None:
        if phase == "stop" and told["generation"] == 2:
            found.append(told["collected"])

    usual = gc.get_threshold()
    gc.freeze()  # beside much that is old the collector waits for as much that is new
    gc.collect()
    gc.set_threshold(*THRESHOLDS[:2], 2)
    gc.callbacks.append(hear)
    try:
        yield found
    finally:
        gc.callbacks.remove(hear)
        gc.set_threshold(*usual)
        gc.unfreeze()


def load(pauses: ShortPauses, decisions: int) -> list[weakref.ref[Knot]]:
    """Change and grow a state, and leave objects behind that grew old before they became garbage."""
    state: Map[int, list[int]] = Map()
    knots: list[weakref.ref[Knot]] = []
    late: deque[Knot] = deque()
    for number in range(decisions):
        state = state.set(number % RUNS, [number])
        if number % DECISIONS_A_LOOK == 0:
            late.append(Knot())
            knots.append(weakref.ref(late[-1]))
        if len(late) > 4:
            late.popleft()
        pauses.decided(RUNS)
    return knots


def alive(knots: list[weakref.ref[Knot]]) -> int:
    return sum(knot() is not None for knot in knots)


def rest_twice(pauses: ShortPauses, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pauses look for rest twice."""
    monkeypatch.setattr("luftpause.telemetry.pauses.REST_S", 0.0)

    async def main() -> None:
        pauses.watch()
        for _ in range(3):
            await asyncio.sleep(0)
        pauses.close()

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info[:2] == (3, 14), reason="some of its releases collect in small steps")
def test_nothing_old_is_looked_at_under_load_and_all_of_it_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = True
    pauses = ShortPauses(lambda: busy)
    with whole_looks() as found:
        knots = load(pauses, 2 * LOOKS_A_REST * DECISIONS_A_LOOK)
        assert found == []
        assert alive(knots) > LOOKS_A_REST
        rest_twice(pauses, monkeypatch)
        assert found == []
        knots += load(pauses, LOOKS_A_REST * DECISIONS_A_LOOK)
        busy = False
        rest_twice(pauses, monkeypatch)
        assert len(found) == 1
        assert alive(knots) == 0


def test_without_somebody_who_says_when_it_hurts_the_collector_looks_when_it_likes() -> None:
    with whole_looks() as found:
        load(ShortPauses(), 2 * LOOKS_A_REST * DECISIONS_A_LOOK)
    assert found


def test_too_little_happened_since_the_last_rest_to_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = ShortPauses(lambda: False)
    with whole_looks() as found:
        load(pauses, LOOKS_A_REST * DECISIONS_A_LOOK)
        rest_twice(pauses, monkeypatch)
        assert len(found) == 1
        load(pauses, (LOOKS_A_REST - 1) * DECISIONS_A_LOOK)
        rest_twice(pauses, monkeypatch)
        assert len(found) == 1


def test_a_process_that_never_rests_and_grows_for_no_reason_is_looked_at_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peak = 0
    monkeypatch.setattr("luftpause.telemetry.pauses.peak_bytes", lambda: peak)
    pauses = ShortPauses(lambda: True)
    with whole_looks() as found:
        peak = GROWN_BYTES + RUNS * BYTES_A_RUN
        load(pauses, LOOKS_A_REST * DECISIONS_A_LOOK)
        assert found == []
        peak += 1
        knots = load(pauses, LOOKS_A_REST * DECISIONS_A_LOOK)
        assert len(found) == 1
        assert alive(knots) < LOOKS_A_REST / 2
        load(pauses, LOOKS_A_REST * DECISIONS_A_LOOK)
        assert len(found) == 1
    pauses.close()


def test_whoever_is_closed_leaves_nothing_frozen() -> None:
    pauses = ShortPauses(lambda: True)
    load(pauses, 2 * DECISIONS_A_LOOK)
    assert gc.get_freeze_count()
    pauses.close()
    pauses.close()
    assert not gc.get_freeze_count()
