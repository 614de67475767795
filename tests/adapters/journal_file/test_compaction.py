import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from adapters.journal_file.journal_world import (
    Q,
    R,
    StoppedClock,
    condensed,
    entries,
    events_of,
    finished,
    in_time,
    read,
    spawned,
    turn,
    with_journal,
)
from crash.crashing_disk import Disk, MemoryFolder
from luftpause.adapters.journal_file.book import Retention
from luftpause.adapters.journal_file.compaction import segment_name, segment_number
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal, Upkeep
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import Event, MessageSent
from luftpause.ports.journal import JournalFailedError, Loaded

EAGER = Upkeep(waste_bytes=1, waste_share=0.0)
LIFE = (spawned, turn, finished)


async def live(journal: FileJournal, loaded: Loaded, run: RunId, *more: Event) -> None:
    """A run from its spawn to its end, which is settled; then what else happens to it."""
    for seq, event in enumerate(of(run) for of in LIFE):
        await journal.append(run, run, seq, loaded.epoch, entries(event))
    journal.settle(condensed(run))
    if more:
        await journal.append(run, run, len(LIFE), loaded.epoch, entries(*more))


async def tidied(journal: FileJournal) -> None:
    """Wait until no compaction is under way."""
    opened = journal._open
    assert opened is not None
    while opened.tidying is not None:
        await opened.tidying


def lived(run: RunId = R) -> tuple[Event, ...]:
    return tuple(of(run) for of in LIFE)


def in_folder(
    folder: Path, use: Callable[[FileJournal, Loaded], Awaitable[None]], upkeep: Upkeep = EAGER
) -> dict[str, int]:
    """Use a journal, and return the files that are there afterwards, with their length."""
    in_time(with_journal(folder, use, upkeep))
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.name != "lock"}


def test_a_run_that_is_over_becomes_one_short_line_and_is_read_back_whole(tmp_path: Path) -> None:
    async def use(journal: FileJournal, loaded: Loaded) -> None:
        await live(journal, loaded, R)
        await tidied(journal)
        seen = await journal.history(R)
        assert (events_of(seen), seen.damage) == (lived(), "")

    files = in_folder(tmp_path, use)
    assert sorted(files) == ["runs-0001.jsonl", "runs.jsonl"]
    assert (tmp_path / "runs.jsonl").read_bytes().count(b"\n") == 1
    assert (tmp_path / "runs-0001.jsonl").read_bytes().count(b"\n") == len(LIFE) + 1, (
        "the list of its tools, and its own"
    )
    assert files["runs.jsonl"] < files["runs-0001.jsonl"]
    loaded = read(tmp_path)
    assert (loaded.histories[0].condensed, loaded.histories[0].entries) == (condensed(), ())
    assert loaded.last_seq == {R: len(LIFE)}


def test_runs_keep_the_order_of_their_births(tmp_path: Path) -> None:
    third = RunId("run_third")

    async def use(journal: FileJournal, loaded: Loaded) -> None:
        for run in (R, Q, third):
            await journal.append(run, run, 0, loaded.epoch, entries(spawned(run)))
        for run in (third, R):
            await journal.append(run, run, 1, loaded.epoch, entries(finished(run)))
            journal.settle(condensed(run))
            await tidied(journal)

    in_folder(tmp_path, use)
    assert [history.run for history in read(tmp_path).histories] == [R, Q, third]


def test_a_run_that_went_on_after_its_archive_comes_back_whole(tmp_path: Path) -> None:
    more = MessageSent(run=R, text="more")

    async def use(journal: FileJournal, loaded: Loaded) -> None:
        await live(journal, loaded, R)
        await tidied(journal)
        await journal.append(R, R, len(LIFE), loaded.epoch, entries(more))
        assert events_of(await journal.history(R)) == (*lived(), more)

    async def end(journal: FileJournal, loaded: Loaded) -> None:
        (history,) = loaded.histories
        assert (events_of(history), history.condensed, history.damage) == ((*lived(), more), None, "")
        await journal.append(R, R, len(LIFE) + 1, loaded.epoch, entries(finished()))
        journal.settle(condensed())
        await tidied(journal)
        assert events_of(await journal.history(R)) == (*lived(), more, finished())

    in_folder(tmp_path, use)
    assert sorted(in_folder(tmp_path, end)) == ["runs-0001.jsonl", "runs-0002.jsonl", "runs.jsonl"]
    assert (tmp_path / "runs.jsonl").read_bytes().count(b"\n") == 1


def test_a_list_of_tools_is_written_once_and_goes_along_with_every_run_that_has_it(tmp_path: Path) -> None:
    runs = [RunId(f"run_{number}") for number in range(5)]

    async def use(journal: FileJournal, loaded: Loaded) -> None:
        for run in (R, *runs):
            await journal.append(run, run, 0, loaded.epoch, entries(spawned(run)))
        assert (tmp_path / "runs.jsonl").read_bytes().count(b'"kind":"toolset"') == 1
        for run in runs:
            await journal.append(run, run, 1, loaded.epoch, entries(finished(run)))
            journal.settle(condensed(run))
            await tidied(journal)
        for run in (R, *runs):
            seen = await journal.history(run)
            assert (events_of(seen)[0], seen.damage) == (spawned(run), "")

    in_folder(tmp_path, use)
    assert (tmp_path / "runs.jsonl").read_bytes().count(b'"kind":"toolset"') == 1, "one run that lives names it"
    assert events_of(read(tmp_path).histories[0]) == (spawned(R),)

    async def end(journal: FileJournal, loaded: Loaded) -> None:
        await journal.append(R, R, 1, loaded.epoch, entries(finished()))
        journal.settle(condensed())
        await tidied(journal)
        seen = await journal.history(R)
        assert (events_of(seen), seen.damage) == ((spawned(R), finished(R)), "")

    in_folder(tmp_path, end)
    assert b'"kind":"toolset"' not in (tmp_path / "runs.jsonl").read_bytes()


def test_a_spawn_during_a_compaction_names_no_list_that_is_on_its_way_out(tmp_path: Path) -> None:
    async def use(journal: FileJournal, loaded: Loaded) -> None:
        await live(journal, loaded, R)
        await journal.append(Q, Q, 0, loaded.epoch, entries(spawned(Q)))
        await tidied(journal)
        assert events_of(await journal.history(Q)) == (spawned(Q),)

    in_folder(tmp_path, use)
    last = {history.run: history for history in read(tmp_path).histories}[Q]
    assert (events_of(last), last.damage) == ((spawned(Q),), "")


def test_what_is_not_worth_it_stays(tmp_path: Path) -> None:
    async def use(journal: FileJournal, loaded: Loaded) -> None:
        await live(journal, loaded, R)
        await tidied(journal)
        assert events_of(await journal.history(R)) == lived()

    assert list(in_folder(tmp_path, use, Upkeep())) == ["runs.jsonl"]
    assert list(in_folder(tmp_path / "share", use, Upkeep(waste_bytes=1, waste_share=1.1))) == ["runs.jsonl"]


def test_the_oldest_runs_are_forgotten_with_their_files(tmp_path: Path) -> None:
    async def use(journal: FileJournal, loaded: Loaded) -> None:
        gone: list[RunId] = []
        for number in range(6):
            run = RunId(f"run_{number}")
            for seq, event in enumerate(of(run) for of in LIFE):
                await journal.append(run, run, seq, loaded.epoch, entries(event))
            gone.extend(journal.settle(condensed(run)))
            await tidied(journal)
        assert gone == [f"run_{number}" for number in range(4)]
        assert (await journal.history(RunId("run_0"))).entries == ()

    files = in_folder(tmp_path, use, Upkeep(waste_bytes=1, waste_share=0.0, retention=Retention(keep_runs=2)))
    assert sorted(files) == ["runs-0005.jsonl", "runs-0006.jsonl", "runs.jsonl"]
    assert [history.run for history in read(tmp_path).histories][-2:] == ["run_4", "run_5"]


def test_a_start_forgets_what_is_too_old(tmp_path: Path) -> None:
    clock = StoppedClock()

    async def use(journal: FileJournal, loaded: Loaded) -> None:
        await live(journal, loaded, R)
        await tidied(journal)

    async def later() -> Loaded:
        clock.now += 3601
        journal = FileJournal(DiskFolder(tmp_path), clock, Upkeep(retention=Retention(keep_for_s=3600)))
        loaded = await journal.load()
        await journal.close()
        return loaded

    in_folder(tmp_path, use)
    loaded = in_time(later())
    assert (loaded.histories, loaded.last_seq) == ((), {})


def test_a_disk_without_room_for_a_compaction_goes_on_without() -> None:
    disk = Disk()

    def no_room(step: str) -> None:
        if step.startswith("write") and "runs.jsonl.new" in step:
            raise OSError(errno.ENOSPC, "No space left on device")

    async def use(journal: FileJournal, loaded: Loaded) -> None:
        disk.fail = no_room
        await live(journal, loaded, R)
        await tidied(journal)
        assert sorted(disk.seen) == ["runs.jsonl"]
        await live(journal, loaded, Q)
        disk.fail = lambda _step: None
        await live(journal, loaded, RunId("run_third"))
        await tidied(journal)
        assert "runs-0001.jsonl" in disk.seen
        assert events_of(await journal.history(R)) == lived()

    in_time(with_journal(MemoryFolder(disk), use, EAGER))


def test_a_name_that_may_not_last_fails_the_journal() -> None:
    disk = Disk()

    def lying(step: str) -> None:
        if step == "sync folder" and disk.steps[-1].startswith("close runs.jsonl"):
            raise OSError(errno.EIO, "Input/output error")

    async def use(journal: FileJournal, loaded: Loaded) -> None:
        disk.fail = lying
        await live(journal, loaded, R)
        await tidied(journal)
        with pytest.raises(JournalFailedError, match="start the runtime again"):
            await journal.append(Q, Q, 0, loaded.epoch, entries(spawned(Q)))
        disk.fail = lambda _step: None

    in_time(with_journal(MemoryFolder(disk), use, EAGER))
    assert "runs-0001.jsonl" in disk.seen, "the main file may need it"
    assert read(MemoryFolder(disk)).histories[0].condensed == condensed()


def test_closing_does_not_wait_for_a_long_compaction(tmp_path: Path) -> None:
    async def use(journal: FileJournal, loaded: Loaded) -> None:
        for number in range(200):
            run = RunId(f"run_{number}")
            await journal.append(run, run, 0, loaded.epoch, entries(*(of(run) for of in LIFE)))
            if number:
                journal.settle(condensed(run))
        journal.settle(condensed(RunId("run_0")))

    assert "runs.jsonl.new" not in in_folder(tmp_path, use, Upkeep(waste_bytes=200_000, waste_share=0.0))
    assert len(read(tmp_path).histories) == 200


def test_segments_have_numbers_that_any_other_file_lacks() -> None:
    assert [segment_number(segment_name(number)) for number in (1, 42, 12345)] == [1, 42, 12345]
    for name in ("runs.jsonl", "runs-1.jsonl", "runs-0001.jsonl.new", "runs-00x1.jsonl", "lock", "runs.jsonl.torn"):
        assert segment_number(name) is None
