"""A peer's resync in pieces that fit a frame, and back: sans-IO."""

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from luftpause.adapters.link.codec import FrameError, to_bytes
from luftpause.adapters.link.frames import Resync
from luftpause.core.model.ids import PeerId
from luftpause.core.scheduling.events import KnownRun, OpenTurn, PeerResynced

PART_ENTRIES: Final = 512
"""Turns or runs in one frame: small enough that reading one never holds up the loop for long."""

ENTRIES_MAX: Final = 262_144
"""Turns and runs that one peer may tell of: twice what an honest client keeps."""

_log = logging.getLogger("luftpause.link")


def resync_frames(report: PeerResynced, *, is_returning: bool = False) -> Iterator[bytes]:
    """Yield the encoded frames of a resync; the last one holds no entries and says so."""
    for start in range(0, len(report.turns), PART_ENTRIES):
        yield from _packed(report.turns[start : start + PART_ENTRIES], ())
    for start in range(0, len(report.runs), PART_ENTRIES):
        yield from _packed((), report.runs[start : start + PART_ENTRIES])
    yield to_bytes(Resync((), (), last=True, is_returning=is_returning))


def _packed(turns: Sequence[OpenTurn], runs: Sequence[KnownRun]) -> Iterator[bytes]:
    try:
        yield to_bytes(Resync(tuple(turns), tuple(runs), last=False))
    except FrameError as error:
        if len(turns) + len(runs) == 1:
            _log.error("resync_entry_unsendable", extra={"error": str(error)})
            return
        half_turns, half_runs = len(turns) // 2, len(runs) // 2
        yield from _packed(turns[:half_turns], runs[:half_runs])
        yield from _packed(turns[half_turns:], runs[half_runs:])


class ResyncParts:
    """Puts the pieces together again."""

    def __init__(self, peer: PeerId) -> None:
        self._peer = peer
        self._turns: list[OpenTurn] = []
        self._runs: list[KnownRun] = []

    def take(self, part: Resync) -> PeerResynced | None:
        """Take in a piece and return the whole once the last one has come.

        Raises:
            FrameError: more entries than ENTRIES_MAX.
        """
        self._turns += part.turns
        self._runs += part.runs
        if len(self._turns) + len(self._runs) > ENTRIES_MAX:
            raise FrameError(f"a resync of more than {ENTRIES_MAX} entries")
        if not part.last:
            return None
        return PeerResynced(peer=self._peer, turns=tuple(self._turns), runs=tuple(self._runs))
