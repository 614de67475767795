"""Group commit: one thread writes whatever was queued meanwhile and syncs once for all of it.

After the first failure nothing is written any more. What a failed write left behind is cut off again if the disk
lets us, so that a refused record does not come back to life on the next start.
"""

import asyncio
import contextlib
import logging
import queue
import threading
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger("luftpause.journal")


class AppendFile(Protocol):
    """The file under the writer; see `disk.DiskFile`. Everything blocks and may raise OSError."""

    def append(self, data: bytes) -> None:
        """Write all of it at the end."""
        ...

    def sync(self) -> None:
        """Return once it is on the disk."""
        ...

    def size(self) -> int:
        """Return the length, bytes."""
        ...

    def cut(self, size: int) -> None:
        """Drop what comes after."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


@dataclass(frozen=True, slots=True)
class _Piece:
    data: bytes
    kept: asyncio.Future[None]


class GroupWriter:
    """Owns the file and the thread. Use it from one event loop."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Piece | None] = queue.SimpleQueue()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="luftpause-journal", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> OSError | None:
        """What broke the file for good, None while it works."""
        return self._failure

    def submit(self, data: bytes) -> asyncio.Future[None]:
        """Queue bytes behind all earlier ones. The future ends when they are on the disk, or with OSError."""
        kept: asyncio.Future[None] = self._loop.create_future()
        self._queue.put(_Piece(data, kept))
        return kept

    async def close(self) -> None:
        """Write what is queued, then let go of the file."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        open_for_more = True
        while open_for_more:
            batch: list[_Piece] = []
            piece = self._queue.get()
            while piece is not None:
                batch.append(piece)
                try:
                    piece = self._queue.get_nowait()
                except queue.Empty:
                    break
            open_for_more = piece is not None
            if batch:
                self._commit(batch)
        self._file.close()

    def _commit(self, batch: list[_Piece]) -> None:
        if self._failure is None:
            sound = 0
            try:
                sound = self._file.size()
                self._file.append(b"".join(piece.data for piece in batch))
                self._file.sync()
            except OSError as error:
                self._failure = error
                logger.error("journal_failed", extra={"error": str(error)})
                with contextlib.suppress(OSError):
                    self._file.cut(sound)
        self._loop.call_soon_threadsafe(_settle, batch, self._failure)


def _settle(batch: list[_Piece], failure: OSError | None) -> None:
    for piece in batch:
        if piece.kept.done():
            continue
        if failure is None:
            piece.kept.set_result(None)
        else:
            piece.kept.set_exception(failure)
