"""What a process writes to: a pipe that ends with us, or one with a name, which the launcher after us reads on."""

import fcntl
import os
from pathlib import Path
from typing import Final

from luftpause.adapters.process_host.log import ProcessLog

_WAITING_BYTES: Final = 1 << 20
"""So much may be written while no launcher reads, where the kernel allows it; after that whoever writes waits."""


def output_pipe(path: Path | None) -> tuple[int, int]:
    """Return the end that we read and the one that the process is to have, which is ours to close once it has it.

    Args:
        path: the pipe's name; None: it needs none.

    Raises:
        OSError: there is no such pipe, or no more files may be open.
    """
    if path is None:
        return os.pipe()
    # A process that could read it too is never without a reader: no write of it fails when we are gone.
    given = os.open(path, os.O_RDWR)
    try:
        own = os.open(path, os.O_RDONLY)
    except OSError:
        os.close(given)
        raise
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        try:
            fcntl.fcntl(own, fcntl.F_SETPIPE_SZ, _WAITING_BYTES)
        except OSError:  # a smaller one does, too
            return own, given
    return own, given


def output_of_another(path: Path) -> int:
    """Return the end to read of a pipe whose process an earlier launcher started.

    Raises:
        OSError: there is no such pipe.
    """
    own = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else it waits for a process that may be gone
    os.set_blocking(own, True)
    return own


def read_all(output: int, log: ProcessLog) -> None:
    """Take in what comes until nobody can write any more, then close both."""
    try:
        while chunk := os.read(output, 65536):
            log.write(chunk)
    finally:
        os.close(output)
        log.close()
