"""The journal is stopped dead before every step of the disk and of the loop while it writes, tidies up and is read.

Whatever was acknowledged must be there afterwards, whole and in order, and nothing that was never handed in.
"""

import asyncio
from dataclasses import dataclass, field
from random import Random

import pytest

from adapters.journal_file.journal_world import StoppedClock, condensed, entries, events_of, finished, spawned, turn
from crash.crashing_disk import Disk, MemoryFolder
from crash.dead_stop_loop import DeadStopLoop, live
from luftpause.adapters.journal_file.book import Retention
from luftpause.adapters.journal_file.journal import FileJournal, Upkeep
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import Event, MessageSent

SMALL = Upkeep(waste_bytes=2500, waste_share=0.1)
FORGETFUL = Upkeep(waste_bytes=2500, waste_share=0.1, retention=Retention(keep_runs=2))
RUNS = [RunId(f"run_{number}") for number in range(6)]
TALKER = RunId("run_talker")


async def pause(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


@dataclass
class Told:
    """What the script handed in, and what of it was acknowledged."""

    handed: dict[RunId, list[Event]] = field(default_factory=dict)
    acked: dict[RunId, int] = field(default_factory=dict)
    gone: set[RunId] = field(default_factory=set)
    compactions: int = 0


class Script:
    """Several runs side by side: each lives and ends; every other one goes on with a message and ends again.

    One more talks all the time, so that whatever the journal does, something is appended meanwhile.
    """

    def __init__(self, journal: FileJournal, told: Told) -> None:
        self._journal = journal
        self._told = told
        self._epoch = 0

    async def play(self) -> None:
        self._epoch = (await self._journal.load()).epoch
        await self._add(TALKER, spawned(TALKER))
        lives = asyncio.gather(*(self._live(run) for run in RUNS))
        while not lives.done():
            await self._add(TALKER, turn(TALKER))
        await lives
        await self._look_back(TALKER)
        await self._journal.close()

    async def _live(self, run: RunId) -> None:
        await pause(30 * (RUNS.index(run) // 2))
        for event in (spawned(run), turn(run), finished(run)):
            await self._add(run, event)
        self._settle(run)
        await pause(15)
        if RUNS.index(run) % 2 and run not in self._told.gone:
            await self._look_back(run)
            await self._look_back(TALKER)
            await self._add(run, MessageSent(run=run, text="more"), turn(run))
            await self._add(run, finished(run))
            self._settle(run)

    async def _look_back(self, run: RunId) -> None:
        length = len(self._told.handed[run])
        seen = await self._journal.history(run)
        assert list(events_of(seen)[:length]) == self._told.handed[run][:length]
        assert not seen.damage

    def _settle(self, run: RunId) -> None:
        # Before the call: what is forgotten is so at once, wherever the crash comes.
        self._told.gone.update(self._journal.settle(condensed(run)))

    async def _add(self, run: RunId, *events: Event) -> None:
        told = self._told
        told.handed.setdefault(run, []).extend(events)
        known = told.acked.get(run, 0)
        told.acked[run] = await self._journal.append(run, run, known, self._epoch, entries(*events))


def play(disk: Disk, upkeep: Upkeep, stop_at: int | None = None) -> tuple[DeadStopLoop, Told]:
    loop, told = DeadStopLoop(stop_at), Told()
    live(loop, Script(FileJournal(MemoryFolder(disk), StoppedClock(), upkeep), told).play())
    return loop, told


async def look(disk: Disk) -> tuple[dict[RunId, list[Event]], dict[RunId, int]]:
    """Everything a new runtime finds: every run's history, read back, and what `load` said of its length."""
    journal = FileJournal(MemoryFolder(disk), StoppedClock())
    loaded = await journal.load()
    found = {history.run: list(events_of(await journal.history(history.run))) for history in loaded.histories}
    for history in loaded.histories:
        assert not history.damage
        if history.condensed is None:
            assert list(events_of(history)) == found[history.run]
    await journal.close()
    return found, loaded.last_seq


def check(disk: Disk, told: Told) -> None:
    loop = DeadStopLoop()
    seen = live(loop, look(disk))
    loop.bury()
    assert seen is not None
    found, last_seq = seen
    for run, acked in told.acked.items():
        if run in told.gone and run not in found:
            continue
        assert found[run][:acked] == told.handed[run][:acked], f"{run} lost what was acknowledged"
        assert found[run] == told.handed[run][: len(found[run])], f"{run} holds what nobody handed in"
        assert last_seq[run] == len(found[run])
    assert set(found) <= set(told.handed)


def steps_of(upkeep: Upkeep) -> tuple[int, int]:
    disk = Disk()
    loop, told = play(disk, upkeep)
    check(disk.after_kill(), told)
    loop.bury()
    assert sum(step.startswith("rename") for step in disk.steps) >= 2, "the script must tidy up"
    return loop.steps, len(disk.steps)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["some", "every"])
@pytest.mark.parametrize("upkeep", [SMALL, FORGETFUL], ids=["all kept", "oldest forgotten"])
def test_whatever_was_acknowledged_outlives_a_stop_at_any_step(upkeep: Upkeep, *, whole: bool) -> None:
    loop_steps, disk_steps = steps_of(upkeep)
    points = [(None, at) for at in range(disk_steps)] + [(at, None) for at in range(loop_steps)]
    assert len(points) > 200
    points = points if whole else Random(7).sample(points, 120)
    for stop_at, crash_at in points:
        disk = Disk(crash_at=crash_at)
        loop, told = play(disk, upkeep, stop_at)
        assert loop.dead
        check(disk.after_kill(), told)
        for seed in range(3):
            check(disk.after_power_loss(Random(f"{stop_at} {crash_at} {seed}")), told)
        loop.bury()
