"""Marks of the processes that a launcher started, so that the next one finds those that outlived it.

A mark is a file with what no other process shares: the machine's boot, the process's id and start, and a word that all
its children carry in their environment. What does not carry the word is never touched, whatever its id.
"""

import contextlib
import logging
import os
import secrets
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from luftpause.adapters import process_table

_LOG: Final = logging.getLogger("luftpause.launcher")
WORD_VARIABLE: Final = "LUFTPAUSE_ENGINE"
_SUFFIX: Final = ".mark"
_CHECK_S: Final = 0.02
MARK_BYTES_MAX: Final = 4096


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One process that was started, and who started it."""

    name: str
    word: str
    pid: int
    started: int
    boot: str
    owner_pid: int
    owner_started: int


class ProcessMarks:
    """The marks of one launcher.

    Args:
        folder: where they lie; None keeps none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder if process_table.is_known() else None

    def new_word(self) -> str:
        """Return a word for the next process, to be put into its environment."""
        return secrets.token_hex(16)

    def keep(self, name: str, word: str, pid: int) -> None:
        """Remember a process that was just started. A folder that cannot be written is warned about, once each time."""
        if self._folder is None:
            return
        own, row = process_table.row_of(os.getpid()), process_table.row_of(pid)
        if own is None or row is None:
            return
        mark = Mark(
            name=name,
            word=word,
            pid=pid,
            started=row.started,
            boot=process_table.boot_id(),
            owner_pid=own.pid,
            owner_started=own.started,
        )
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self._folder / f"{word}{_SUFFIX}"
            part = path.with_suffix(".part")
            part.write_bytes(msgspec.json.encode(mark))
            part.replace(path)
        except OSError as error:
            _LOG.warning("process_mark_lost", extra={"engine": name, "error": str(error)})

    def drop(self, word: str) -> None:
        """Forget a process that has ended with all its children."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / f"{word}{_SUFFIX}").unlink(missing_ok=True)

    def stop_orphans(self, grace_s: float) -> tuple[str, ...]:
        """End what a launcher that is gone left behind, and return the names. Blocks for the grace at most, and a bit.

        The processes of a launcher that lives are left alone.
        """
        stopped = []
        for path, mark in self._marks():
            owner = process_table.row_of(mark.owner_pid)
            same_boot = mark.boot == process_table.boot_id()
            if same_boot and owner is not None and owner.started == mark.owner_started:
                continue
            if same_boot and (pids := _carriers(mark)):
                _end(pids, mark, grace_s)
                stopped.append(mark.name)
                _LOG.warning("orphan_stopped", extra={"engine": mark.name, "pid": mark.pid})
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        return tuple(stopped)

    def _marks(self) -> Iterable[tuple[Path, Mark]]:
        if self._folder is None or not self._folder.is_dir():
            return
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                if path.is_symlink() or path.stat().st_size > MARK_BYTES_MAX:
                    continue
                yield path, msgspec.json.decode(path.read_bytes(), type=Mark)
            except (OSError, msgspec.DecodeError):
                _LOG.warning("process_mark_unreadable", extra={"path": str(path)})


def _carriers(mark: Mark) -> tuple[int, ...]:
    """Return the processes that carry the mark's word."""
    found = []
    for row in process_table.rows():
        env = process_table.environment_of(row.pid)
        if env is not None and secrets.compare_digest(env.get(WORD_VARIABLE, "").encode(), mark.word.encode()):
            found.append(row.pid)
    return tuple(found)


def _end(pids: Iterable[int], mark: Mark, grace_s: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            _signal(pid, number, mark)
        until = time.monotonic() + grace_s
        while (pids := _carriers(mark)) and time.monotonic() < until:
            time.sleep(_CHECK_S)
        if not pids:
            return
    _LOG.error("orphan_stays", extra={"engine": mark.name, "pids": tuple(pids)})


def _signal(pid: int, number: signal.Signals, mark: Mark) -> None:
    """Signal a process, but none that took its id meanwhile."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        env = process_table.environment_of(pid)
        if env is not None and env.get(WORD_VARIABLE) == mark.word:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        _LOG.debug("orphan_gone", extra={"pid": pid})
    finally:
        os.close(handle)
