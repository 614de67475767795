"""A look at a folder from outside, whoever owns it: nothing is locked, mended or written. Everything here blocks."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from luftpause.adapters import process_table
from luftpause.adapters.journal_file.compaction import MAIN
from luftpause.adapters.journal_file.disk import LOCK_NAME
from luftpause.adapters.journal_file.reading import Scan, scan

LOOKED_AT_MAX: Final = 64 * 1024 * 1024
"""Bytes of the longest main file that is read; reading this much takes a second or two."""

PID_BYTES_MAX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there is.

    Attributes:
        size: bytes of the main file; None: there is none.
        holder: the process that has the folder now; None: nobody is seen to.
        torn: bytes of an end that was not written whole; while somebody has the folder, that may be under way.
        found: what the main file holds; None where it is not there or longer than `LOOKED_AT_MAX`.
    """

    size: int | None
    holder: int | None
    torn: int = 0
    found: Scan | None = None


class NoFileError(OSError):
    """Something stands in a file's place that is none: a folder, a pipe, a device."""


def look_at(folder: Path) -> Look:
    """Look at a folder.

    Raises:
        NoFileError: the journal in it is no file.
        OSError: it may not be looked at.
        NewerVersionError: a newer luftpause wrote some of it.
    """
    holder = _holder(folder / LOCK_NAME)
    path = folder / MAIN
    try:
        file = _opened(path)
    except FileNotFoundError:
        return Look(size=None, holder=holder)
    with file:
        size = os.fstat(file.fileno()).st_size
        if size > LOOKED_AT_MAX:
            return Look(size=size, holder=holder)
        found = scan(file)
        return Look(size=size, holder=holder, torn=file.tell() - found.sound_bytes, found=found)


def _holder(lock: Path) -> int | None:
    """Return who wrote itself into the lock and has it open. To try the lock would be in the way of who takes it."""
    try:
        with _opened(lock) as file:
            text = file.read(PID_BYTES_MAX).decode("ascii", "replace").strip()
    except (FileNotFoundError, NoFileError):
        return None
    return int(text) if text.isdecimal() and process_table.has_open(int(text), lock) else None


def _opened(path: Path) -> BinaryIO:
    """Open a file. A pipe is not waited for: nobody may ever write into it.

    Raises:
        NoFileError: it is none.
        OSError: it is not there, or may not be read.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise NoFileError
    return os.fdopen(number, "rb")
