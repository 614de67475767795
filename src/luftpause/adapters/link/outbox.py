"""Reports on their way: kept until the scheduler has confirmed them, sans-IO.

Why kept: a report may be written to a connection that is already dead, or be made while there is none. On each
reconnect the resync tells the state *before* the unconfirmed reports (the ledger takes a report in only when it is
confirmed), and then these are sent again in their order. That is right in both cases: a scheduler that restarted
learns the open turns from the resync and how they ended, with usage and tool calls, from the reports; one that
merely lost the connection gets at worst duplicates, which are legal.
"""

import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

from luftpause.adapters.link.codec import FrameError, report_frame, to_bytes
from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.events import TurnFailed, TurnReport, TurnsRenewed

REPORTS_MAX: Final = 65_536
"""Unconfirmed reports kept; past it the oldest counts as confirmed and only the resync tells of it."""

RENEWED_MAX: Final = 2_048
"""Turns renewed in one frame."""

_log = logging.getLogger("luftpause.link")


class Outbox:
    """Numbers reports, encodes them, and keeps those that matter after a reconnect."""

    def __init__(self) -> None:
        self._seq = 0
        self._kept: deque[tuple[int, Instant, TurnReport, bytes]] = deque()

    def put(self, report: TurnReport, now: Instant, *, keep: bool) -> bytes:
        """Number a report about one turn and return its frame; with `keep` it stays here until confirmed."""
        self._seq += 1
        try:
            frame = to_bytes(report_frame(self._seq, report))
        except FrameError as error:
            _log.error("report_unsendable", extra={"report": type(report).__name__, "error": str(error)})
            assert not isinstance(report, TurnsRenewed)
            report = TurnFailed(turn=report.turn, cause="its report did not fit the link")
            frame = to_bytes(report_frame(self._seq, report))
        if keep:
            self._kept.append((self._seq, now, report, frame))
        return frame

    def put_renewed(self, report: TurnsRenewed) -> bytes:
        """Return the frames of a sign of life. Never kept: a resync is one too."""
        frames = []
        for start in range(0, len(report.turns), RENEWED_MAX):
            self._seq += 1
            part = TurnsRenewed(turns=report.turns[start : start + RENEWED_MAX])
            frames.append(to_bytes(report_frame(self._seq, part)))
        return b"".join(frames)

    def confirmed(self, seq: int) -> Iterator[tuple[TurnReport, Instant]]:
        """Drop and yield, oldest first, every report up to and including `seq`, with when it was made."""
        while self._kept and (self._kept[0][0] <= seq or len(self._kept) > REPORTS_MAX):
            _, made, report, _ = self._kept.popleft()
            yield report, made

    def unconfirmed(self) -> Iterator[bytes]:
        """The frames to send again, oldest first."""
        return (frame for _, _, _, frame in self._kept)
