"""Where the runs' events are kept, so that nothing that was acknowledged is forgotten.

The unit that one runtime owns is the tree; sequence numbers are per run and there is no order across runs. Every event
is kept with the moment of its tree's clock.

A run that is over is kept at hand in a few words and in full where it is out of the way. What is kept for how long is
the journal's business: it says which runs are gone, and whoever knew them forgets them too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from luftpause.core.model.ids import RunId
from luftpause.core.runs.condensing import RunCondensed
from luftpause.core.runs.replay import Entry, History


class JournalFailedError(Exception):
    """The journal cannot keep anything any more (disk full, I/O error): nothing further is acknowledged."""


class StaleAppendError(Exception):
    """Somebody else wrote in between, or owns the tree now: whoever tried must stop working on that run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """All that a journal holds.

    Attributes:
        epoch: under which this runtime now owns it; every append carries it.
        histories: one per run, in the order of their first records; a run that is over may be condensed.
        last_seq: of each history, the sequence number of its last record.
    """

    epoch: int
    histories: tuple[History, ...]
    last_seq: dict[RunId, int]


class Journal(Protocol):
    """An append-only store of events."""

    async def load(self) -> Loaded:
        """Read everything. Once, before the first append.

        Raises:
            JournalFailedError: it cannot be read, or a newer version wrote it.
        """
        ...

    async def append(self, tree: RunId, run: RunId, expected_seq: int, epoch: int, entries: Sequence[Entry]) -> int:
        """Keep events of one run and return the sequence number of the last one, once they are durable.

        `expected_seq` is the run's last sequence number as the caller knows it, 0 for a new run.

        Raises:
            JournalFailedError: they may or may not be kept; treat them as not kept.
            StaleAppendError: `expected_seq` or `epoch` is out of date; nothing was written.
        """
        ...

    def settle(self, kept: RunCondensed) -> Sequence[RunId]:
        """Take note that a run is over and of all that has to be at hand of it; records that follow undo that.

        Returns:
            The runs that are not kept any more, whole trees: from now on nobody knows them.
        """
        ...

    async def history(self, run: RunId) -> History:
        """Read back everything that is kept of one run, with all that was appended so far.

        Raises:
            JournalFailedError: it cannot be read; a run that nobody knows is no error, but has no entries.
        """
        ...

    def written_utc(self, run: RunId) -> float:
        """Return when a run's last record was handed in, for people: seconds of UTC; 0 for a run that nobody knows.

        It is the same after a restart.
        """
        ...

    async def close(self) -> None:
        """Finish what was accepted and let go of the store."""
        ...
