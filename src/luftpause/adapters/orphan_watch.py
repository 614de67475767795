"""Ends what a launcher left when it was killed: `orphan_watch FOLDER WAIT_S GRACE_S PID STARTED`, run with `python -m`.

The launcher holds its input open. Once that ends, the launcher is gone: after a wait, in which the next one may adopt
its engines, those that nobody adopted are ended. So none outlives its launcher for longer than was allowed.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from luftpause.adapters import process_table
from luftpause.adapters.process_marks import ProcessMarks, ProcessOwner


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
    with subprocess.Popen(
        (sys.executable, "-m", "luftpause.adapters.orphan_watch", *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C at a terminal is for its launcher
    ) as watch:
        try:
            yield
        finally:
            watch.kill()


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
