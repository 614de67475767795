import asyncio
import errno
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import pytest

from adapters.journal_file.journal_world import (
    EVERY_EVENT,
    Q,
    R,
    StoppedClock,
    entries,
    events_of,
    finished,
    in_time,
    read,
    spawned,
    turn,
    with_journal,
    write,
)
from luftpause.adapters.journal_file.disk import AppendFile, DiskFile, DiskFolder
from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.core.model.ids import RunId
from luftpause.ports.journal import JournalFailedError, Loaded, StaleAppendError


def test_what_was_appended_is_there_after_a_restart_under_a_new_epoch(tmp_path: Path) -> None:
    write(tmp_path, *EVERY_EVENT)
    loaded = read(tmp_path)
    assert loaded.histories[0].entries == entries(*EVERY_EVENT)
    assert loaded.last_seq == {R: len(EVERY_EVENT)}
    assert (loaded.epoch, read(tmp_path).epoch) == (2, 2)


def test_the_folder_is_made_and_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "new" / "state", spawned())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_last_line_cut_anywhere_is_set_aside_and_the_rest_stands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = write(tmp_path, spawned(), turn(), finished()).read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    for cut in range(last, len(whole)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "runs.jsonl").write_bytes(whole[:cut])
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert events_of(read(folder).histories[0]) == (spawned(), turn())
        assert [entry.message for entry in caplog.records] == (["journal_end_torn"] if cut > last else [])
        assert (folder / "runs.jsonl").read_bytes() == whole[:last]
        if cut > last:
            assert (folder / "runs.jsonl.torn").read_bytes() == whole[last:cut] + b"\n"


def test_a_journal_with_a_torn_end_goes_on(tmp_path: Path) -> None:
    path = write(tmp_path, spawned(), turn())
    path.write_bytes(path.read_bytes()[:-20])
    write(tmp_path, turn(), finished())
    assert events_of(read(tmp_path).histories[0]) == (spawned(), turn(), finished())


def test_a_broken_last_line_is_torn_too(tmp_path: Path) -> None:
    path = write(tmp_path, spawned(), turn())
    path.write_bytes(path.read_bytes()[:-8] + b"ff}\n\n"[:-1])
    assert events_of(read(tmp_path).histories[0]) == (spawned(),)


def test_a_broken_line_in_the_middle_stops_that_run_and_no_other(tmp_path: Path) -> None:
    path = write(tmp_path, spawned(R), spawned(Q), turn(R), turn(Q))
    path.write_bytes(path.read_bytes().replace(b'\\"at\\"', b'\\"on\\"', 1))
    histories = {history.run: history for history in read(tmp_path).histories}
    assert "line 4" in histories[R].damage
    assert histories[Q].damage == ""
    assert path.read_bytes().count(b"\n") == 5, "the evidence stays"


def test_a_second_runtime_on_the_folder_is_told_who_has_it(tmp_path: Path) -> None:
    async def try_again(_journal: FileJournal, _loaded: Loaded) -> str:
        with pytest.raises(JournalFailedError) as refusal:
            await FileJournal(DiskFolder(tmp_path), StoppedClock()).load()
        return str(refusal.value)

    assert f"in use by process {os.getpid()}" in in_time(with_journal(tmp_path, try_again))
    read(tmp_path)


def test_the_lock_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    holder = (
        "import sys, pathlib\n"
        "from luftpause.adapters.journal_file.disk import FolderLock\n"
        "lock = FolderLock(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(JournalFailedError, match=f"process {process.pid}"):
            read(tmp_path)
        process.kill()
        process.wait(10)
    read(tmp_path)


def test_an_append_that_expects_the_wrong_place_writes_nothing(tmp_path: Path) -> None:
    async def stale(journal: FileJournal, loaded: Loaded) -> None:
        await journal.append(R, R, 0, loaded.epoch, entries(spawned()))
        for seq, epoch in ((0, loaded.epoch), (2, loaded.epoch), (1, loaded.epoch - 1)):
            with pytest.raises(StaleAppendError):
                await journal.append(R, R, seq, epoch, entries(turn()))

    in_time(with_journal(tmp_path, stale))
    assert events_of(read(tmp_path).histories[0]) == (spawned(),)


File = TypeVar("File", bound=DiskFile)


class Opening(DiskFolder, Generic[File]):
    """A folder with files of a special kind, which are at hand in `opened`."""

    def __init__(self, path: Path, kind: Callable[[Path], File], opened: list[File]) -> None:
        super().__init__(path)
        self._at = path
        self._kind = kind
        self._opened = opened

    def open(self, name: str) -> AppendFile:
        self._opened.append(self._kind(self._at / name))
        return self._opened[-1]


class BreakingFile(DiskFile):
    """Fails like a full disk, half way through a write, or like a disk that lost what it said it had."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.full = False
        self.lying = False

    def append(self, data: bytes) -> None:
        if self.full:
            super().append(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(data)

    def sync(self) -> None:
        if self.lying:
            raise OSError(errno.EIO, "Input/output error")
        super().sync()


@pytest.mark.parametrize("fault", ["full", "lying"])
def test_a_disk_that_fails_fails_the_journal_for_good_and_keeps_nothing_refused(tmp_path: Path, fault: str) -> None:
    async def fail() -> None:
        opened: list[BreakingFile] = []
        journal = FileJournal(Opening(tmp_path, BreakingFile, opened), StoppedClock())
        loaded = await journal.load()
        await journal.append(R, R, 0, loaded.epoch, entries(spawned(R)))
        setattr(opened[0], fault, True)
        with pytest.raises(JournalFailedError):
            await journal.append(Q, Q, 0, loaded.epoch, entries(spawned(Q)))
        setattr(opened[0], fault, False)
        with pytest.raises(JournalFailedError, match="has failed"):
            await journal.append(R, R, 1, loaded.epoch, entries(turn(R)))
        await journal.close()

    in_time(fail())
    assert [history.run for history in read(tmp_path).histories] == [R]


class GatedFile(DiskFile):
    """Holds its first sync until told, and counts."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gate, self.syncing = threading.Event(), threading.Event()
        self.syncs = 0

    def sync(self) -> None:
        self.syncs += 1
        self.syncing.set()
        assert self.gate.wait(10)
        super().sync()


def test_nothing_is_acknowledged_before_it_is_synced_and_one_sync_serves_all_that_queued(tmp_path: Path) -> None:
    async def crowd() -> int:
        opened: list[GatedFile] = []
        journal = FileJournal(Opening(tmp_path, GatedFile, opened), StoppedClock())
        loaded = await journal.load()
        runs = [RunId(f"run_{number}") for number in range(50)]
        appends = [
            asyncio.ensure_future(journal.append(run, run, 0, loaded.epoch, entries(spawned(run)))) for run in runs
        ]
        assert await asyncio.to_thread(opened[0].syncing.wait, 10)
        assert not any(append.done() for append in appends)
        opened[0].gate.set()
        await asyncio.gather(*appends)
        await journal.close()
        return opened[0].syncs

    assert in_time(crowd()) <= 3
    assert len(read(tmp_path).histories) == 50


def test_a_waiter_that_leaves_does_not_undo_its_record(tmp_path: Path) -> None:
    async def leave(journal: FileJournal, loaded: Loaded) -> None:
        append = asyncio.ensure_future(journal.append(R, R, 0, loaded.epoch, entries(spawned())))
        await asyncio.sleep(0)
        append.cancel()
        with pytest.raises(asyncio.CancelledError):
            await append
        await journal.append(R, R, 1, loaded.epoch, entries(turn()))

    in_time(with_journal(tmp_path, leave))
    assert len(read(tmp_path).histories[0].entries) == 2


def test_an_unusable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(JournalFailedError, match="is not usable"):
        read(tmp_path / "file")
