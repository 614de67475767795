import errno
from pathlib import Path

import pytest

from adapters.journal_file.journal_world import R, condensed, entries, events_of, finished, read, spawned, turn
from adapters.journal_file.test_compaction import EAGER, LIFE, in_folder, live, lived, tidied
from crash.crashing_disk import Disk, MemoryFolder
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.adapters.journal_file.opening import open_folder
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import MessageSent
from luftpause.ports.journal import JournalFailedError, Loaded


def archive_one(folder: Path, *, go_on: bool = False) -> None:
    async def use(journal: FileJournal, loaded: Loaded) -> None:
        await live(journal, loaded, R)
        await tidied(journal)
        if go_on:
            await journal.append(R, R, len(LIFE), loaded.epoch, entries(MessageSent(run=R, text="more")))

    in_folder(folder, use, EAGER)


def test_what_a_compaction_left_lying_about_is_removed(tmp_path: Path) -> None:
    archive_one(tmp_path)
    for name in ("runs.jsonl.new", "runs-0002.jsonl", "runs-0007.jsonl"):
        (tmp_path / name).write_bytes(b"half\n")
    (tmp_path / "runs-notes.jsonl").write_bytes(b"mine\n")
    read(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"lock", "runs.jsonl", "runs-0001.jsonl", "runs-notes.jsonl"}


def test_segments_stay_where_the_main_file_is_damaged_or_gone(tmp_path: Path) -> None:
    archive_one(tmp_path)
    path = tmp_path / "runs.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"heavy", b"light") + whole.replace(b"run_r", b"run_s"))
    read(tmp_path)
    assert (tmp_path / "runs-0001.jsonl").exists()
    path.unlink()
    read(tmp_path)
    assert (tmp_path / "runs-0001.jsonl").exists()

    async def use(journal: FileJournal, loaded: Loaded) -> None:
        await live(journal, loaded, RunId("run_new"))
        await tidied(journal)

    assert "runs-0002.jsonl" in in_folder(tmp_path, use), "no number is given twice"


def test_a_run_that_went_on_and_whose_archive_is_gone_keeps_its_result_and_goes_no_further(tmp_path: Path) -> None:
    archive_one(tmp_path, go_on=True)
    (tmp_path / "runs-0001.jsonl").unlink()
    (history,) = read(tmp_path).histories
    assert (history.condensed, history.entries) == (condensed(), ())
    assert "its archive is not there" in history.damage


def test_an_archive_that_is_gone_or_damaged_is_told_when_it_is_read(tmp_path: Path) -> None:
    archive_one(tmp_path)
    segment = tmp_path / "runs-0001.jsonl"
    whole = segment.read_bytes()

    async def look(journal: FileJournal, _loaded: Loaded) -> None:
        for content, words in ((whole.replace(b"moon", b"noon"), "damaged"), (b"", "damaged"), (None, "not there")):
            if content is None:
                segment.unlink()
            else:
                segment.write_bytes(content)
            assert words in (await journal.history(R)).damage
        segment.write_bytes(whole)
        assert events_of(await journal.history(R)) == lived()

    in_folder(tmp_path, look)


def test_a_folder_that_cannot_be_opened_is_let_go_of() -> None:
    disk = Disk()
    closed: list[str] = []

    class Folder(MemoryFolder):
        def lock(self) -> "Folder":
            return self

        def close(self) -> None:
            closed.append("lock")

    def broken(step: str) -> None:
        if step.startswith("create"):
            raise OSError(errno.EROFS, "Read-only file system")

    disk.fail = broken
    with pytest.raises(OSError, match="Read-only"):
        open_folder(Folder(disk))
    assert closed == ["lock"]
    with pytest.raises(JournalFailedError, match="'memory' is not usable"):
        read(Folder(disk))


def test_any_flipped_byte_in_the_middle_harms_its_run_alone(tmp_path: Path) -> None:
    done, other = RunId("run_done"), RunId("run_other")

    async def use(journal: FileJournal, loaded: Loaded) -> None:
        for run, seq, event in (
            (done, 0, spawned(done)),
            (other, 0, spawned(other)),
            (R, 0, spawned(R)),
            (done, 1, finished(done)),
            (R, 1, turn(R)),
            (other, 1, turn(other)),
        ):
            await journal.append(run, run, seq, loaded.epoch, entries(event))

    in_folder(tmp_path, use)
    path = tmp_path / "runs.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    start = sum(map(len, lines[:5]))
    for place in range(start, start + len(lines[5]) - 1):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        path.write_bytes(bytes(flipped))
        found = open_folder(DiskFolder(tmp_path))
        found.file.close()
        found.lock.close()
        damage = {history.run: history.damage for history in found.histories}
        assert damage[R]
        assert (damage[done], damage[other]) == ("", "")
        assert set(damage) == {done, other, R}
