"""The folder and its files as the operating system sees them: everything here blocks and belongs in a thread."""

import contextlib
import os
import sys
from pathlib import Path
from typing import BinaryIO, Final, Protocol

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME: Final = "lock"
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class AppendFile(Protocol):
    """A file that only grows. Everything blocks and may raise OSError."""

    def append(self, data: bytes) -> None:
        """Write all of it at the end; after an error some of it may stand in the file."""
        ...

    def sync(self) -> None:
        """Return once it is on the disk; after an error it may or may not be."""
        ...

    def size(self) -> int:
        """Return the length, bytes."""
        ...

    def cut(self, size: int) -> None:
        """Drop what comes after, on the disk too."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Held(Protocol):
    """Something that is held until it is let go."""

    def close(self) -> None:
        """Let go."""
        ...


class Folder(Protocol):
    """A folder of files without subfolders. Everything blocks and may raise OSError."""

    def lock(self) -> Held:
        """Make the folder where it is missing, and hold it against other processes.

        Raises:
            BlockingIOError: another process has it; the text names it.
        """
        ...

    def names(self) -> list[str]:
        """Return the names of the files."""
        ...

    def open(self, name: str) -> AppendFile:
        """Open a file for appending. A new one is there after a crash of the machine too, once this returned."""
        ...

    def read(self, name: str) -> BinaryIO:
        """Open a file for reading; it stays readable when another takes its name."""
        ...

    def replace(self, name: str, over: str) -> None:
        """Give a file the name of another, which is gone then; after a crash it is one or the other."""
        ...

    def remove(self, name: str) -> None:
        """Drop a file; one that is not there is no error."""
        ...

    def sync(self) -> None:
        """Return once the names of all files are on the disk."""
        ...


class DiskFile:
    """A file that only grows, readable by its owner alone; see AppendFile."""

    def __init__(self, path: Path) -> None:
        existed = path.exists()
        self._fd = os.open(path, _OPEN_FLAGS, 0o600)
        if not existed:
            sync_folder(path.parent)

    def append(self, data: bytes) -> None:
        """Write all of it at the end."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def sync(self) -> None:
        """Return once everything written is on the disk."""
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


class DiskFolder:
    """A folder of the file system, open to its owner alone; see Folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def lock(self) -> Held:
        """Make it and hold it."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FolderLock(self._path)

    def names(self) -> list[str]:
        """Return the names of the files in it."""
        return sorted(os.listdir(self._path))

    def open(self, name: str) -> AppendFile:
        """Open a file for appending."""
        return DiskFile(self._path / name)

    def read(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return (self._path / name).open("rb")

    def replace(self, name: str, over: str) -> None:
        """Rename a file over another."""
        os.replace(self._path / name, self._path / over)

    def remove(self, name: str) -> None:
        """Drop a file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path / name)

    def sync(self) -> None:
        """Make the names durable."""
        sync_folder(self._path)


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
        self._fd = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
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
