"""The journal port over one folder: locking, loading, sequence numbers, acknowledgements and tidying up.

One process owns the whole folder, so every tree in it has the same epoch: one more than any record carries.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, cast

from luftpause.adapters.journal_file.book import Book, Retention, Tidied, Tidying
from luftpause.adapters.journal_file.compaction import MAIN, Compaction, StoppedError, segment_name
from luftpause.adapters.journal_file.disk import Folder, Held
from luftpause.adapters.journal_file.lines import VERSION, NewerVersionError, Record, encode
from luftpause.adapters.journal_file.opening import open_folder
from luftpause.adapters.journal_file.reading_back import open_sources, read_back
from luftpause.adapters.journal_file.toolsets import Toolsets
from luftpause.adapters.journal_file.writer import GroupWriter
from luftpause.core.model.ids import RunId
from luftpause.core.runs.condensing import RunCondensed
from luftpause.core.runs.events import Event, RunSpawned
from luftpause.core.runs.replay import Entry, History
from luftpause.ports.clock import WallClock
from luftpause.ports.journal import JournalFailedError, Loaded, StaleAppendError

ONCE_FAILED: Final = "nothing more is kept; start the runtime again once the disk has room and is sound"
T = TypeVar("T")
logger = logging.getLogger("luftpause.journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """When the main file is tidied up: once what is over makes up this much of it, in bytes and as a share."""

    waste_bytes: int = 4 * 1024 * 1024
    waste_share: float = 0.5
    retention: Retention = field(default_factory=Retention)


@dataclass(slots=True)
class _Open:
    lock: Held
    writer: GroupWriter
    book: Book
    epoch: int
    stop: threading.Event = field(default_factory=threading.Event)
    tidying: asyncio.Task[None] | None = None
    exchange: asyncio.Future[None] | None = None
    tidy_from: int = 0


class FileJournal:
    """Keeps events in `runs.jsonl` under a folder that it creates and locks, and what is over in `runs-NNNN.jsonl`.

    Args:
        folder: the runtime's state directory.
        clock: dates the records, for people and for retention.
        upkeep: when it is tidied up, and how much is kept.
    """

    def __init__(self, folder: Folder, clock: WallClock, upkeep: Upkeep | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._upkeep = upkeep or Upkeep()
        self._open: _Open | None = None
        self._toolsets = Toolsets(VERSION)

    async def load(self) -> Loaded:
        """Lock the folder, mend a torn end, read everything and open for appending.

        Raises:
            JournalFailedError: the folder is in use or unusable, or a newer version wrote the file.
        """
        try:
            found = await asyncio.to_thread(open_folder, self._folder)
        except BlockingIOError as error:
            raise JournalFailedError(f"state directory {str(self._folder)!r} is in use by {error}") from error
        except OSError as error:
            raise JournalFailedError(f"state directory {str(self._folder)!r} is not usable: {error}") from error
        except NewerVersionError as error:
            raise JournalFailedError(f"{MAIN!r} in {str(self._folder)!r} is too new: {error}") from error
        book = Book(self._upkeep.retention, found.segment_last)
        for run, known in found.known.items():
            book.enter(run, known)
        book.lists.enter(found.toolsets)
        book.size = found.size
        gone = set(book.expire(self._clock.utc()))
        self._open = _Open(lock=found.lock, writer=GroupWriter(found.file), book=book, epoch=found.epoch + 1)
        return Loaded(
            epoch=self._open.epoch,
            histories=tuple(history for history in found.histories if history.run not in gone),
            last_seq=book.last_seq(),
        )

    async def append(self, tree: RunId, run: RunId, expected_seq: int, epoch: int, entries: Sequence[Entry]) -> int:
        """Keep events of one run; see the port."""
        journal = self._usable()
        known = journal.book.seq(run)
        if epoch != journal.epoch or expected_seq != known:
            raise StaleAppendError(f"{run}: expected {epoch}/{expected_seq}, the journal is at {journal.epoch}/{known}")
        now = self._clock.utc()
        first, toolset, lists = self._listed(journal.book, entries[0].event)
        records = [
            Record(
                seq=known + place,
                tree=tree,
                epoch=epoch,
                at=entry.at,
                utc_s=now,
                event=first if place == 1 else entry.event,
                toolset=toolset if place == 1 else "",
            )
            for place, entry in enumerate(entries, start=1)
        ]
        lines = b"".join(map(encode, records))
        journal.book.add(records, len(lines), len(lists))
        try:
            await journal.writer.submit(lists + lines)
        except OSError as error:
            raise _failed(error) from error
        return known + len(entries)

    def settle(self, kept: RunCondensed) -> Sequence[RunId]:
        """Note that a run is over; see the port."""
        journal = self._open
        if journal is None:
            return ()
        journal.book.settle(kept, journal.epoch)
        gone = journal.book.expire(self._clock.utc())
        self._tidy_up(journal)
        return gone

    async def history(self, run: RunId) -> History:
        """Read one run back; see the port."""
        journal = self._usable()
        while journal.exchange is not None:  # its lines are about to stand elsewhere
            await asyncio.wait([journal.exchange])
        where = journal.book.where(run)
        if where is None:
            return History(run=run)
        try:
            # In the writer's thread, so that no exchange comes in between.
            sources = await journal.writer.call(lambda: open_sources(self._folder, *where))
            return await asyncio.to_thread(read_back, run, sources)
        except FileNotFoundError as error:
            return History(run=run, damage=f"its archive is not there: {error}")
        except OSError as error:
            raise JournalFailedError(f"the history of {run} cannot be read: {error}") from error

    def written_utc(self, run: RunId) -> float:
        """Return when a run's last record was handed in; see the port."""
        return 0.0 if self._open is None else self._open.book.written_utc(run)

    async def close(self) -> None:
        """Write what is queued, then let go of file and folder."""
        journal, self._open = self._open, None
        if journal is None:
            return
        journal.stop.set()
        if journal.tidying is not None:
            await asyncio.gather(journal.tidying, return_exceptions=True)
        try:
            await journal.writer.close()
        finally:
            journal.lock.close()

    def _listed(self, book: Book, event: Event) -> tuple[Event, str, bytes]:
        """Return an event as it is written, the list of tools that it names, and that list where it is still to write.

        The list goes to the disk in one piece with whoever names it first.
        """
        if not isinstance(event, RunSpawned) or not event.tools:
            return event, "", b""
        toolset = self._toolsets.named(event.tools)
        line = b"" if book.lists.may_be_named(toolset.digest) else toolset.line
        return replace(event, tools=()), toolset.digest, line

    def _usable(self) -> _Open:
        if self._open is None:
            raise JournalFailedError("the journal is not open")
        if self._open.writer.failure is not None:
            raise _failed(self._open.writer.failure)
        return self._open

    def _tidy_up(self, journal: _Open) -> None:
        """Begin a compaction if it is worth it and none is under way."""
        waste = journal.book.waste
        least = max(self._upkeep.waste_bytes, self._upkeep.waste_share * journal.book.size, journal.tidy_from)
        if journal.tidying is None and waste >= least and journal.writer.failure is None:
            journal.tidying = asyncio.create_task(self._tidy(journal), name="journal compaction")

    async def _tidy(self, journal: _Open) -> None:
        book, writer = journal.book, journal.writer
        plan = await _step_by_step(book.begin())
        runs = len(plan.over)
        work = Compaction(self._folder, plan, journal.stop)
        try:
            await writer.call(_nothing)  # all that the plan counts on is on the disk then
            done = await asyncio.to_thread(work.write)
            journal.exchange = asyncio.create_task(self._exchange(journal, work, plan, done), name="journal exchange")
            await journal.exchange
        except (OSError, StoppedError) as error:
            journal.exchange = None
            book.leave(plan)
            journal.tidy_from = 2 * book.waste
            if isinstance(error, OSError):  # else the journal is closing, and the next start finds as much to do
                logger.warning("journal_not_compacted", extra={"error": str(error)})
            await asyncio.to_thread(_quietly, work.abandon)
        else:
            journal.tidy_from = 0
            journal.exchange = None
            dead = book.dead_segments()
            await asyncio.to_thread(_quietly, lambda: self._remove(dead))
            logger.info("journal_compacted", extra={"runs": runs, "forgotten": len(plan.forgotten)})
        finally:
            journal.exchange = journal.tidying = None

    async def _exchange(self, journal: _Open, work: Compaction, plan: Tidying, done: Tidied) -> None:
        """Let the new main file be the one, and the loop go on while it is taken over where each line stands."""
        await journal.writer.exchange(work.follow, self._folder.sync)
        await _step_by_step(journal.book.end(plan, done))

    def _remove(self, segments: Iterable[int]) -> None:
        for segment in segments:
            self._folder.remove(segment_name(segment))


async def _step_by_step(steps: Generator[None, None, T]) -> T:
    """Let the loop go on between any two steps, and return what comes of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)
        await asyncio.sleep(0)


def _failed(error: OSError) -> JournalFailedError:
    return JournalFailedError(f"the journal has failed: {error}; {ONCE_FAILED}")


def _nothing() -> None:
    return


def _quietly(clean: Callable[[], None]) -> None:
    """What is left over is removed at the next start."""
    with contextlib.suppress(OSError):
        clean()
