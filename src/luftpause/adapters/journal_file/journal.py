"""The journal port over one file: locking, loading, sequence numbers and acknowledgements.

One process owns the whole folder, so every tree in it has the same epoch: one more than any record carries.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from luftpause.adapters.journal_file.disk import DiskFile, FolderLock
from luftpause.adapters.journal_file.lines import NewerVersionError, Record, encode
from luftpause.adapters.journal_file.reading import Scan, scan
from luftpause.adapters.journal_file.writer import AppendFile, GroupWriter
from luftpause.core.model.ids import RunId
from luftpause.core.runs.replay import Entry, History
from luftpause.ports.clock import WallClock
from luftpause.ports.journal import JournalFailedError, Loaded, StaleAppendError

FILE_NAME: Final = "runs.jsonl"
logger = logging.getLogger("luftpause.journal")


@dataclass(slots=True)
class _Open:
    lock: FolderLock
    writer: GroupWriter
    last_seq: dict[RunId, int]
    epoch: int


class FileJournal:
    """Keeps events in `runs.jsonl` under a folder that it creates and locks.

    Args:
        folder: the runtime's state directory.
        clock: dates the records, for people.
        open_file: opens the file; tests hand in one that breaks.
    """

    def __init__(self, folder: Path, clock: WallClock, open_file: Callable[[Path], AppendFile] = DiskFile) -> None:
        self._folder = folder
        self._clock = clock
        self._open_file = open_file
        self._open: _Open | None = None

    async def load(self) -> Loaded:
        """Lock the folder, mend a torn end, read everything and open for appending.

        Raises:
            JournalFailedError: the folder is in use or unusable, or a newer version wrote the file.
        """
        try:
            lock, found = await asyncio.to_thread(self._prepare)
        except BlockingIOError as error:
            raise JournalFailedError(f"state directory {str(self._folder)!r} is in use by {error}") from error
        except OSError as error:
            raise JournalFailedError(f"state directory {str(self._folder)!r} is not usable: {error}") from error
        except NewerVersionError as error:
            raise JournalFailedError(f"{str(self._folder / FILE_NAME)!r} is too new: {error}") from error
        writer = GroupWriter(self._open_file(self._folder / FILE_NAME))
        self._open = _Open(lock=lock, writer=writer, last_seq=dict(found.last_seq), epoch=found.epoch + 1)
        return Loaded(epoch=self._open.epoch, histories=found.histories, last_seq=dict(found.last_seq))

    async def append(self, tree: RunId, run: RunId, expected_seq: int, epoch: int, entries: Sequence[Entry]) -> int:
        """Keep events of one run; see the port."""
        journal = self._open
        if journal is None:
            raise JournalFailedError("the journal is not open")
        if journal.writer.failure is not None:
            raise JournalFailedError(f"the journal has failed: {journal.writer.failure}")
        known = journal.last_seq.get(run, 0)
        if epoch != journal.epoch or expected_seq != known:
            raise StaleAppendError(f"{run}: expected {epoch}/{expected_seq}, the journal is at {journal.epoch}/{known}")
        now = self._clock.utc()
        lines = b"".join(
            encode(Record(seq=known + place, tree=tree, epoch=epoch, at=entry.at, utc_s=now, event=entry.event))
            for place, entry in enumerate(entries, start=1)
        )
        journal.last_seq[run] = known + len(entries)
        try:
            # Shielded: whoever stops waiting does not undo a write that is on its way.
            await asyncio.shield(journal.writer.submit(lines))
        except OSError as error:
            raise JournalFailedError(f"the journal has failed: {error}") from error
        return known + len(entries)

    async def history(self, run: RunId) -> History:
        """Read one run back; see the port."""
        path = self._folder / FILE_NAME

        def read() -> Scan:
            with path.open("rb") as file:
                return scan(file)

        try:
            found = await asyncio.to_thread(read)
        except OSError as error:
            raise JournalFailedError(f"the history of {run} cannot be read: {error}") from error
        return next((history for history in found.histories if history.run == run), History(run=run, entries=()))

    async def close(self) -> None:
        """Write what is queued, then let go of file and folder."""
        journal, self._open = self._open, None
        if journal is not None:
            await journal.writer.close()
            journal.lock.close()

    def _prepare(self) -> tuple[FolderLock, Scan]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FolderLock(self._folder)
        try:
            return lock, self._read_and_mend()
        except BaseException:
            lock.close()
            raise

    def _read_and_mend(self) -> Scan:
        path = self._folder / FILE_NAME
        if not path.exists():
            return scan(())
        with path.open("rb") as file:
            found = scan(file)
            file.seek(found.sound_bytes)
            torn = file.read()
        if torn:
            _set_aside(path, found.sound_bytes, torn)
        for number in found.broken_lines:
            logger.error("journal_line_broken", extra={"file": str(path), "line": number})
        return found


def _set_aside(path: Path, sound_bytes: int, torn: bytes) -> None:
    copy = DiskFile(path.with_name(FILE_NAME + ".torn"))
    try:
        copy.append(torn if torn.endswith(b"\n") else torn + b"\n")
        copy.sync()
    finally:
        copy.close()
    whole = DiskFile(path)
    try:
        whole.cut(sound_bytes)
    finally:
        whole.close()
    logger.warning("journal_end_torn", extra={"file": str(path), "bytes": len(torn)})
