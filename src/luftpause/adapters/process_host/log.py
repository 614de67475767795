"""What a process wrote: the last lines in memory, and the last megabytes in two files if a folder is given."""

import logging
import os
import re
import threading
from collections import deque
from pathlib import Path
from typing import Final

from luftpause.ports.processes import LogSlice

_LOG = logging.getLogger("luftpause.launcher")
LINES_MAX: Final = 40
LINE_CHARS_MAX: Final = 500
RING_LINES_MAX: Final = 1000
"""Lines of one name that are kept to look at, over all processes of that name."""
FILE_BYTES_MAX: Final = 4 * 2**20
"""A file that grew past this becomes `NAME.log.1`, in place of the one before it."""

_LINE_END: Final = re.compile(rb"[\r\n]")
"""Bars of progress overwrite themselves: without their returns, no end of theirs would ever be seen."""


class LineRing:
    """The last lines of all processes of one name, each with its number. Used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=RING_LINES_MAX)
        self._count = 0

    def extend(self, lines: list[str]) -> None:
        """Take in lines."""
        with self._lock:
            self._lines.extend(lines)
            self._count += len(lines)

    def since(self, number: int) -> LogSlice:
        """Return the lines that are kept from a number on, and the number of the next one; any number is fine."""
        with self._lock:
            first = self._count - len(self._lines)
            lines = tuple(self._lines)[max(0, number - first) :]
            return LogSlice(lines=lines, next=self._count)


class ProcessLog:
    """A bounded log. Writing and reading may come from different threads.

    Args:
        directory: where its file is kept; None keeps no file.
        name: what the file is called.
        ring: where its lines go besides.

    Raises:
        OSError: the folder or the file cannot be made.
    """

    def __init__(self, directory: Path | None, name: str, ring: LineRing | None = None) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._partial = b""
        self._path: Path | None = None
        self._file: int | None = None
        self._size = 0
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            self._path = directory / f"{name.replace(os.sep, '_')}.log"
            self._open(self._path)

    def close(self) -> None:
        """Close the file. The last lines stay readable."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def write(self, chunk: bytes) -> None:
        """Take in what the process wrote, cut anywhere."""
        if self._path is not None:
            self._keep(self._path, chunk)
        *whole, rest = _LINE_END.split(self._partial + chunk)
        # A line without an end must not grow without bound.
        self._partial = rest[: LINE_CHARS_MAX * 4]
        readable = [text for text in map(_readable, whole) if text]
        with self._lock:
            self._lines.extend(readable)
        if self._ring is not None:
            self._ring.extend(readable)

    def tail(self) -> tuple[str, ...]:
        """Return the last lines, oldest first, printable and cut."""
        last = _readable(self._partial)
        with self._lock:
            return (*self._lines, last) if last else tuple(self._lines)

    def _open(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = os.fstat(self._file).st_size

    def _keep(self, path: Path, chunk: bytes) -> None:
        try:
            if self._size > FILE_BYTES_MAX:
                self.close()
                path.replace(path.with_suffix(".log.1"))
                self._open(path)
            if self._file is not None:
                self._size += os.write(self._file, chunk)
        except OSError as error:
            # A full disk must not stop the engine: it would block on a pipe that nobody reads.
            _LOG.warning("process_log_lost", extra={"path": str(path), "error": str(error)})
            self.close()
            self._path = None


def _readable(line: bytes) -> str:
    text = line[: LINE_CHARS_MAX * 4].decode("utf-8", "replace").rstrip()[:LINE_CHARS_MAX]
    return "".join(char if char.isprintable() else "·" for char in text)
