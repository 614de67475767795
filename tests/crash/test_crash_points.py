"""The runtime is stopped dead between any two awaits and before any step of the disk while three runs live in it.

Then it starts again on what the disk kept: no run is lost, no call that may have acted is made again, everybody gets
their answers, and what is remembered is what was lived.
"""

import itertools
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import pytest

from crash.crashing_disk import Disk, MemoryFolder
from crash.dead_stop_loop import DeadStopLoop, live
from crash.three_runs import UNINTERRUPTED, Outside, StoppedClock, check_answers, live_once
from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.core.model.ids import ActiveMs
from luftpause.core.runs.invariants import check
from luftpause.core.runs.replay import replay
from luftpause.core.runs.state import State
from luftpause.core.runs.view import RunStatus, RunView, view

NOW = ActiveMs(0)


@dataclass(frozen=True)
class Point:
    """Where a life ends: before a step of the loop, or before a step of the disk."""

    stop_at: int | None = None
    crash_at: int | None = None


@pytest.fixture(autouse=True)
def _counted_handles(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()
    monkeypatch.setattr("secrets.token_urlsafe", lambda _bytes: f"{next(numbers):026d}")


def one_life(disk: Disk, outside: Outside, point: Point) -> tuple[DeadStopLoop, dict[str, RunView] | None]:
    disk.crash_at = point.crash_at
    loop = DeadStopLoop(point.stop_at)
    return loop, live(loop, live_once(MemoryFolder(disk), outside))


async def remembered(disk: Disk) -> State:
    journal = FileJournal(MemoryFolder(disk), StoppedClock())
    loaded = await journal.load()
    await journal.close()
    return replay(loaded.histories)


def recall(disk: Disk) -> State:
    loop = DeadStopLoop()
    state = live(loop, remembered(disk.after_kill()))
    loop.bury()
    assert state is not None
    return state


def uninterrupted() -> tuple[DeadStopLoop, Disk, Outside, dict[str, RunView]]:
    disk, outside = Disk(), Outside()
    loop, seen = one_life(disk, outside, Point())
    loop.bury()
    assert seen is not None
    return loop, disk, outside, seen


def judge(seen: dict[str, RunView], outside: Outside, disk: Disk, usual: dict[str, RunView]) -> None:
    unsafe = [key for tool, key in outside.effects if tool == "pay"]
    assert len(set(unsafe)) == len(unsafe), "a call that may have acted was made again"
    for task, run in seen.items():
        assert run.status is RunStatus.FINISHED
        lost = check_answers(run.result, UNINTERRUPTED[task])
        work = replace(run.own, failed_tool_calls=run.own.failed_tool_calls - lost, turn_ms=0, tool_ms=0)
        assert work == replace(usual[task].own, turn_ms=0, tool_ms=0)
    state = recall(disk)
    check(state)
    assert len(state.runs) == len(usual), "a run was lost, or spawned twice"
    for run in seen.values():
        assert replace(view(state, run.run, NOW), budget=None) == replace(run, budget=None), "lived is not remembered"


def survive(disk: Disk, outside: Outside, points: Iterator[Point], chance: Random | None) -> tuple[Disk, Outside]:
    """End one life after another at these points, and give what is left to the next."""
    for point in points:
        outside_then = outside.copy()
        loop, _ = one_life(disk, outside_then, point)
        outside = outside_then.copy()
        disk = disk.after_kill() if chance is None else disk.after_power_loss(chance)
        loop.bury()
    return disk, outside


def points_of(loop: DeadStopLoop, disk: Disk) -> list[Point]:
    return [Point(stop_at=at) for at in range(loop.steps)] + [Point(crash_at=at) for at in range(len(disk.steps))]


def test_an_uninterrupted_life_is_what_the_script_says() -> None:
    loop, disk, outside, seen = uninterrupted()
    judge(seen, outside, disk, seen)
    assert {task: run.result for task, run in seen.items()} == UNINTERRUPTED
    assert sum(tool == "pay" for tool, _ in outside.effects) == 3
    assert len(outside.allowed) == 1
    assert any(step.startswith("rename") for step in disk.steps), "the journal tidies up meanwhile"
    assert (loop.steps, len(disk.steps)) > (300, 100)
    once_more, again = one_life(disk.after_kill(), outside.copy(), Point())
    once_more.bury()
    assert again is not None
    assert {task: run.result for task, run in again.items()} == {task: run.result for task, run in seen.items()}


def outlive(points: list[Point], *, power_lost: bool) -> None:
    _, _, _, usual = uninterrupted()
    for point in points:
        chance = Random(f"{point}") if power_lost else None
        disk, outside = survive(Disk(), Outside(), iter([point]), chance)
        loop, seen = one_life(disk, outside, Point())
        loop.bury()
        assert seen is not None, point
        judge(seen, outside, disk, usual)


def all_points() -> list[Point]:
    loop, disk, _, _ = uninterrupted()
    return points_of(loop, disk)


@pytest.mark.parametrize("power_lost", [False, True], ids=["killed", "power lost"])
def test_some_points_are_outlived(*, power_lost: bool) -> None:
    outlive(Random(11).sample(all_points(), 150), power_lost=power_lost)


def effects_before(point: Point) -> int:
    """Return how many calls had acted when a life ended there."""
    outside = Outside()
    loop, _ = one_life(Disk(), outside, point)
    acted = len(outside.effects)
    loop.bury()
    return acted


def test_a_stop_between_effect_and_record_is_told_as_unknown() -> None:
    """The call of `pay` acts alone; the next steps of the loop are the way of its result into the journal."""
    loop, finished, whole, usual = uninterrupted()
    acted = max(place for place, (tool, _) in enumerate(whole.effects) if tool == "pay")
    told = 0
    for along in (
        [Point(stop_at=at) for at in range(loop.steps)],
        [Point(crash_at=at) for at in range(len(finished.steps))],
    ):
        first = bisect_left(along, acted + 1, key=effects_before)
        for point in along[first : bisect_left(along, acted + 2, lo=first, key=effects_before)]:
            disk, outside = survive(Disk(), Outside(), iter([point]), None)
            loop, seen = one_life(disk, outside, Point())
            loop.bury()
            assert seen is not None
            told += "Whether it took effect is unknown" in str(seen["pay"].result)
            judge(seen, outside, disk, usual)
    assert told > 0


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(4, 60))])
def test_life_after_life_is_outlived(seed: int) -> None:
    chance = Random(seed)
    _, _, _, usual = uninterrupted()
    lives = (Point(stop_at=chance.randrange(250)) for _ in range(6))
    disk, outside = survive(Disk(), Outside(), lives, chance if seed % 2 else None)
    loop, seen = one_life(disk, outside, Point())
    loop.bury()
    assert seen is not None
    judge(seen, outside, disk, usual)


@pytest.mark.nightly
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("power_lost", [False, True], ids=["killed", "power lost"])
def test_every_point_is_outlived(*, power_lost: bool) -> None:
    outlive(all_points(), power_lost=power_lost)
