"""The file and the folder as the operating system sees them: everything here blocks and belongs in a thread."""

import os
import sys
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOCK_NAME: Final = "lock"
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class DiskFile:
    """A file that only grows, readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        existed = path.exists()
        self._fd = os.open(path, _OPEN_FLAGS, 0o600)
        if not existed:
            sync_folder(path.parent)

    def append(self, data: bytes) -> None:
        """Write all of it at the end.

        Raises:
            OSError: disk full or broken; some of it may stand in the file.
        """
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def sync(self) -> None:
        """Return once everything written is on the disk.

        Raises:
            OSError: it may or may not be.
        """
        sync_descriptor(self._fd)

    def size(self) -> int:
        """Return its length, bytes."""
        return os.fstat(self._fd).st_size

    def cut(self, size: int) -> None:
        """Drop everything after the first `size` bytes."""
        os.ftruncate(self._fd, size)
        sync_descriptor(self._fd)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def sync_descriptor(descriptor: int) -> None:
    """Force a file's content through to the disk itself."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync alone stops at the drive's cache there
    elif sys.platform == "win32":
        os.fsync(descriptor)
    else:
        os.fdatasync(descriptor)


def sync_folder(path: Path) -> None:
    """Make a new file's name as durable as its content."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FolderLock:
    """Holds a folder against other processes until closed, or until this process is gone."""

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            BlockingIOError: another process has it; the text names its process id where known.
        """
        self._fd = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if sys.platform == "win32":
                msvcrt.locking(self._fd, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._fd, 20).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise BlockingIOError(f"process {holder}" if holder else "another process") from error
        os.ftruncate(self._fd, 0)
        os.write(self._fd, str(os.getpid()).encode())

    def close(self) -> None:
        """Let others have it."""
        os.close(self._fd)
