"""Writing the event log beside the scheduler: a decision hands its facts over and never waits for a disk.

States are immutable, so a thread of its own can turn them into text while the scheduler goes on. What it cannot keep up
with is dropped and counted. The log is capped: a full file makes way for a new one, and one old one is kept.
"""

import contextlib
import logging
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from luftpause.adapters.event_log.lines import digest_of, end, entry, gap, sealed, segment
from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.events import Event
from luftpause.core.scheduling.state import Decision, State

BYTES_MAX: Final = 128 * 1024 * 1024
"""The file and the old one beside it, together."""

WAITING_MAX: Final = 16_384
"""Events that wait for the thread; the next one is dropped."""

CLOSE_S: Final = 5.0
"""How long closing waits until all is written."""

DIGEST_CREDIT: Final = 64
"""Runs, turns and tools that each event pays for: a small state is digested each time, a large one now and then."""

_log = logging.getLogger("luftpause.event_log")


@dataclass(frozen=True, slots=True)
class _Told:
    """An event with what it led to; `dropped` events were lost before it, which began with the state `before`."""

    before: State
    event: Event
    now: Instant
    decision: Decision
    dropped: int


class EventLog:
    """Appends to a file. `start` first, `close` last; `decided` may be called in between, from one thread.

    Args:
        path: the file; the old one beside it has `.1` at its end.
        version: of this program.
        policy: the scheduler's.
    """

    def __init__(
        self, path: Path, *, version: str, policy: str, bytes_max: int = BYTES_MAX, waiting_max: int = WAITING_MAX
    ) -> None:
        self._path = path
        self._version = version
        self._policy = policy
        self._bytes_max = bytes_max
        self.waiting_max = waiting_max
        self._waiting: deque[_Told] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._broken = False
        self._dropped = 0
        self._dropped_ever = 0
        self._given_up = 0
        self._credit = 0
        self._size = 0
        self._sum = 0
        self._file: BinaryIO | None = None
        self._thread = threading.Thread(target=self._run, name="event-log", daemon=True)

    @property
    def dropped(self) -> int:
        """How many events were dropped since the start: the thread did not keep up, or the file cannot be written."""
        return self._dropped_ever + self._given_up

    def start(self, state: State, now: Instant) -> None:
        """Open the file and begin a segment.

        Raises:
            OSError: the file cannot be written.
        """
        self._open()
        try:
            if self._size > self._bytes_max // 2:
                self._turn_over()
            elif self._size:
                self._size += self._opened.write(b"\n")  # the last line of who was killed may be torn
            self._begin(state, now)
            self._opened.flush()
        except OSError:
            self._give_up()
            raise
        self._thread.start()

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """Hand a decision over. Never waits, never raises."""
        if self._broken:
            self._dropped_ever += 1
            return
        if len(self._waiting) >= self.waiting_max:
            self._dropped += 1
            self._dropped_ever += 1
            return
        self._waiting.append(_Told(before, event, now, decision, self._dropped))
        self._dropped = 0
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Write what waits, and close."""
        self._closing = True
        self._wake.set()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            _log.warning("event_log_unfinished", extra={"file": str(self._path), "unwritten": len(self._waiting)})

    def _run(self) -> None:
        try:
            while not self._closing or self._waiting:
                self._wake.wait()
                if not self._closing:
                    self._wake.clear()
                while self._waiting:
                    self._write(self._waiting.popleft())
                self._opened.flush()
            self._append(end())
            self._opened.close()
        except OSError as error:
            self._give_up()
            _log.error("event_log_failed", extra={"file": str(self._path), "cause": str(error)})
        finally:
            self._broken = True  # also by a fault of ours, which the thread shows as it ends

    def _give_up(self) -> None:
        self._broken = True
        self._given_up = len(self._waiting)
        self._waiting.clear()
        with contextlib.suppress(OSError):  # what could not be written cannot be flushed either
            self._opened.close()

    @property
    def _opened(self) -> BinaryIO:
        assert self._file is not None, "started before anything is written"
        return self._file

    def _write(self, told: _Told) -> None:
        if told.dropped:
            self._append(gap(told.dropped))
            _log.warning("events_dropped", extra={"file": str(self._path), "count": told.dropped})
        if self._size > self._bytes_max // 2:
            self._append(end())
            self._turn_over()
            self._begin(told.before, told.now)
        elif told.dropped:
            self._begin(told.before, told.now)
        state = told.decision.state
        self._append(entry(told.event, told.now, told.decision.actions, self._digest(state)))

    def _digest(self, state: State) -> str:
        size = 1 + len(state.runs) + len(state.turns) + len(state.held) + len(state.replicas)
        size += len(state.tools.histories)
        self._credit += DIGEST_CREDIT
        if self._credit < size:
            return ""
        self._credit = 0
        return digest_of(state)

    def _turn_over(self) -> None:
        self._opened.close()
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        self._open()

    def _open(self) -> None:
        self._file = self._path.open("ab")
        self._size = os.fstat(self._file.fileno()).st_size

    def _append(self, line: bytes) -> None:
        text, self._sum = sealed(line, self._sum)
        self._size += self._opened.write(text)

    def _begin(self, state: State, now: Instant) -> None:
        utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._sum = 0
        self._append(segment(state, now, version=self._version, policy=self._policy, utc=utc))
