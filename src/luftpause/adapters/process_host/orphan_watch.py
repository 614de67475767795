"""Ends what a launcher left when it was killed: `orphan_watch FOLDER WAIT_S GRACE_S PID STARTED`, run with `python -m`.

The launcher tells it of its marks and holds its input open. Once that ends, the launcher is gone: after a wait, in
which the next one may adopt its engines, those that nobody adopted are ended. So none outlives its launcher for longer
than was allowed, and those whose marks somebody moved or deleted, which nobody could find, not even for so long.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from luftpause.adapters import process_table
from luftpause.adapters.process_host.marks import Mark, ProcessMarks, ProcessOwner

_LOG: Final = logging.getLogger("luftpause.launcher")
_PAUSE_S: Final = 0.5
_LOOK_S: Final = 1.0
"""Between two looks at whether a mark that waits for the next launcher is still there."""
_RESTARTS_MAX: Final = 10


@contextmanager
def watched(marks: ProcessMarks | None, wait_s: float, grace_s: float) -> Iterator[None]:
    """Have this process watched for the length of a block, at whose end nothing of it may be left.

    Args:
        marks: its marks; None: nothing of it outlives it.
        wait_s: how long its engines may live on when it is killed, seconds.
        grace_s: how long each may take to end then before it is killed, seconds.
    """
    own = process_table.row_of(os.getpid())
    if marks is None or marks.folder is None or own is None:
        yield
        return
    arguments = (str(marks.folder), str(wait_s), str(grace_s), str(own.pid), str(own.started))
    watch = _Watch((sys.executable, "-m", "luftpause.adapters.process_host.orphan_watch", *arguments), marks)
    marks.witnessed_by(watch.tell)
    try:
        yield
    finally:
        watch.close()


class _Watch:
    """A watch that is started again, a few times, when it ends before its launcher.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, argv: tuple[str, ...], marks: ProcessMarks) -> None:
        self._argv = argv
        self._marks = marks
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True, name="orphan-watch")
        self._keeper.start()

    def tell(self, line: bytes) -> None:
        """Tell it of a mark, without waiting. One that does not listen is ended, and the next one told all."""
        with self._lock:
            if not _is_told(self._process, line):
                self._process.kill()

    def close(self) -> None:
        """End it."""
        with self._lock:
            self._is_over.set()
            self._process.kill()
        self._keeper.join()
        with self._process:
            pass

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            self._argv,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at a terminal is for its launcher
        )
        assert process.stdin is not None, "it has a pipe"
        os.set_blocking(process.stdin.fileno(), False)
        _is_told(process, self._marks.testimony())
        return process

    def _keep(self) -> None:
        for _ in range(_RESTARTS_MAX):
            with self._process as watch:
                code = watch.wait()
            if self._is_over.wait(_PAUSE_S):
                return
            _LOG.warning("orphan_watch_ended", extra={"code": code})
            with self._lock:
                if self._is_over.is_set():
                    return
                try:
                    self._process = self._start()
                except OSError as error:
                    _LOG.warning("orphan_watch_not_started", extra={"error": str(error)})
        self._process.wait()
        if not self._is_over.is_set():
            _LOG.error("orphan_watch_given_up", extra={"restarts": _RESTARTS_MAX})


def _is_told(process: subprocess.Popen[bytes], lines: bytes) -> bool:
    """Write to a watch; say whether it took all."""
    assert process.stdin is not None, "it has a pipe"
    try:
        return not lines or process.stdin.write(lines) == len(lines)
    except (OSError, ValueError):  # it has ended: the next one is told
        return True


def _told(lines: Iterable[bytes]) -> Collection[Mark]:
    """Return the marks of what may still run once its launcher tells no more."""
    marks: dict[str, Mark] = {}
    for line in lines:
        try:
            told = msgspec.json.decode(line, type=Mark | str)
        except msgspec.DecodeError:  # cut off in the middle
            continue
        if isinstance(told, str):
            marks.pop(told, None)
        else:
            marks[told.word] = told
    return marks.values()


def main(arguments: list[str]) -> int:
    """Listen until the launcher is gone, and wait then some; see to its orphans."""
    folder, wait_s, grace_s = Path(arguments[0]), float(arguments[1]), float(arguments[2])
    launcher = ProcessOwner(pid=int(arguments[3]), started=int(arguments[4]))
    told = _told(sys.stdin.buffer)
    marks = ProcessMarks(folder)
    until = time.monotonic() + wait_s
    told = marks.end_unmarked(told, grace_s)
    while (left_s := until - time.monotonic()) > 0:
        time.sleep(min(left_s, _LOOK_S))
        told = marks.end_unmarked(told, grace_s)
    marks.stop_orphans(grace_s, of=launcher)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
