"""Group commit: one thread writes whatever was handed in meanwhile and syncs once for all of it.

The loop owns the queue, the thread gets one batch after another. After the first failure nothing is written any more.
What a failed write left behind is cut off again if the disk lets us, so that a refused record does not come back to
life on the next start.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from luftpause.adapters.journal_file.disk import AppendFile

T = TypeVar("T")
logger = logging.getLogger("luftpause.journal")


@dataclass(frozen=True, slots=True)
class _Piece:
    data: bytes
    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Job:
    call: Callable[[], object]
    done: asyncio.Future[object]


_Work: TypeAlias = _Piece | _Job


class GroupWriter:
    """Owns the file and the thread. Use it from one event loop."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="luftpause-journal")
        self._waiting: list[_Work] = []
        self._busy = False
        self._failure: OSError | None = None

    @property
    def failure(self) -> OSError | None:
        """What broke the file for good, None while it works."""
        return self._failure

    def submit(self, data: bytes) -> asyncio.Future[None]:
        """Queue bytes behind everything earlier. The future ends when they are on the disk, or with OSError.

        Cancelling it undoes nothing: they are written all the same.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue(_Piece(data, done))
        return done

    def call(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Queue a call between two commits, behind everything earlier. What it raises, OSError, is the future's end."""
        done: asyncio.Future[object] = self._loop.create_future()
        self._queue(_Job(job, done))
        return cast(asyncio.Future[T], done)

    def exchange(self, prepare: Callable[[AppendFile], AppendFile], names: Callable[[], None]) -> asyncio.Future[None]:
        """Queue an exchange of the file for another that holds the same records.

        `prepare` returns the other one; an OSError from it leaves all as it was. `names` makes its name last: without
        that nothing written to it would, so an OSError from it fails the writer.
        """

        def swap() -> None:
            old, self._file = self._file, prepare(self._file)
            old.close()
            try:
                names()
            except OSError as error:
                self._fail(error)
                raise

        return self.call(swap)

    async def close(self) -> None:
        """Do what is queued, then let go of the file."""
        try:
            await self.call(lambda: self._file.close())
        finally:
            self._thread.shutdown()

    def _queue(self, work: _Work) -> None:
        self._waiting.append(work)
        if not self._busy:
            # Not at once: whatever else this step of the loop hands in shares the sync.
            self._busy = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        batch, self._waiting = self._waiting, []
        self._busy = bool(batch)
        if batch:
            ended = self._loop.run_in_executor(self._thread, self._do, batch)
            ended.add_done_callback(lambda each: self._settle(batch, each))

    def _settle(self, batch: list[_Work], ended: asyncio.Future[list[object]]) -> None:
        fault = ended.exception()
        if fault is not None:  # nobody knows what of the batch was done
            self._fail(OSError(f"{type(fault).__name__}: {fault}"))
        self._hand_over()
        outcomes = ended.result() if fault is None else [self._failure] * len(batch)
        for work, outcome in zip(batch, outcomes, strict=True):
            if work.done.done():
                continue
            if isinstance(outcome, OSError):
                work.done.set_exception(outcome)
            else:
                cast(asyncio.Future[object], work.done).set_result(outcome)

    def _do(self, batch: list[_Work]) -> list[object]:
        """In the thread: pieces that follow each other are one commit."""
        outcomes: list[object] = []
        pieces: list[bytes] = []
        for work in batch:
            if isinstance(work, _Piece):
                pieces.append(work.data)
                continue
            outcomes.extend(self._commit(pieces))
            pieces = []
            try:
                outcomes.append(work.call())
            except OSError as error:
                outcomes.append(error)
        outcomes.extend(self._commit(pieces))
        return outcomes

    def _commit(self, pieces: list[bytes]) -> Iterable[object]:
        if pieces and self._failure is None:
            sound = 0
            try:
                sound = self._file.size()
                self._file.append(b"".join(pieces))
                self._file.sync()
            except OSError as error:
                self._fail(error)
                with contextlib.suppress(OSError):
                    self._file.cut(sound)
        return [self._failure] * len(pieces)

    def _fail(self, error: OSError) -> None:
        self._failure = error
        logger.error("journal_failed", extra={"error": str(error)})
