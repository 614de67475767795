"""Ends what a launcher left when it was killed: `orphan_watch FOLDER WAIT_S GRACE_S PID STARTED`, run with `python -m`.

The launcher holds its input open. Once that ends, the launcher is gone: after a wait, in which the next one may adopt
its engines, those that nobody adopted are ended. So none outlives its launcher for longer than was allowed.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from luftpause.adapters import process_table
from luftpause.adapters.process_marks import ProcessMarks, ProcessOwner

_LOG: Final = logging.getLogger("luftpause.launcher")
_PAUSE_S: Final = 0.5
_RESTARTS_MAX: Final = 10


@contextmanager
def watched(folder: Path | None, wait_s: float, grace_s: float) -> Iterator[None]:
    """Have this process watched for the length of a block, at whose end nothing of it may be left.

    Args:
        folder: where its marks lie; None: nothing of it outlives it.
        wait_s: how long its engines may live on when it is killed, seconds.
        grace_s: how long each may take to end then before it is killed, seconds.
    """
    own = process_table.row_of(os.getpid())
    if folder is None or own is None:
        yield
        return
    arguments = (str(folder), str(wait_s), str(grace_s), str(own.pid), str(own.started))
    watch = _Watch((sys.executable, "-m", "luftpause.adapters.orphan_watch", *arguments))
    try:
        yield
    finally:
        watch.close()


class _Watch:
    """A watch that is started again, a few times, when it ends before its launcher.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True, name="orphan-watch")
        self._keeper.start()

    def close(self) -> None:
        """End it."""
        with self._lock:
            self._is_over.set()
            self._process.kill()
        self._keeper.join()
        with self._process:
            pass

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at a terminal is for its launcher
        )

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


def main(arguments: list[str]) -> int:
    """Wait until the launcher is gone, and then some; see to its orphans."""
    folder, wait_s, grace_s = Path(arguments[0]), float(arguments[1]), float(arguments[2])
    launcher = ProcessOwner(pid=int(arguments[3]), started=int(arguments[4]))
    sys.stdin.buffer.read()
    time.sleep(wait_s)
    ProcessMarks(folder).stop_orphans(grace_s, of=launcher)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
