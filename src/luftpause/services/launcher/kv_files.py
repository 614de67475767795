"""The files in which a launcher keeps runs' KV: in one folder of its own, under names of its own, and no others.

What engines write there holds what was said in a run, so nobody else may look into the folder, and nothing in it
outlives the launcher. No link is followed, neither in the folder nor to another one in its place. Calls touch the disk:
make them in a thread where that may take long.
"""

import logging
import os
import re
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from luftpause.core.model.ids import KvFile, ModelName
from luftpause.core.model.parked_kv import SavedKv, kv_file_name

_LOG: Final = logging.getLogger("luftpause.launcher")
FREE_MIN: Final = 1 << 30
"""So many bytes are left to others on the disk."""
_OURS: Final = re.compile(r"run-[0-9]+\.kv")


class KvFiles:
    """What is kept, and how much of it.

    Args:
        folder: where; it is there already.
        size_max: what all files may take together, bytes.
    """

    def __init__(self, folder: Path, size_max: int) -> None:
        self._folder = folder
        self._identity = _identity(folder)
        self._size_max = size_max
        self._kept: dict[KvFile, SavedKv] = {}
        self._unwanted: set[KvFile] = set()
        self._stamps: dict[ModelName, str] = {}

    def resize(self, size_max: int) -> None:
        """Let the files take so much from now on; what is too much is for the scheduler to name."""
        self._size_max = size_max

    def kept(self) -> tuple[SavedKv, ...]:
        """Return all files."""
        return tuple(self._kept.values())

    def has_room(self) -> bool:
        """Return whether one more may be written."""
        if not self._is_in_place():
            return False
        try:
            return self._size() < self._size_max and shutil.disk_usage(self._folder).free > FREE_MIN
        except OSError:
            return False

    def keep(self, saved: SavedKv) -> SavedKv | None:
        """Take in a file that an engine has written; None where it is not there, too large, or not wanted any more."""
        try:
            size = self._taken_in(self._path(saved.file))
        except OSError as error:
            _LOG.warning("kv_file_missing", extra={"file": saved.file, "error": str(error)})
            self.drop((saved.file,))
            return None
        if saved.file in self._unwanted or self._size() + size > self._size_max:
            self.drop((saved.file,))
            return None
        found = SavedKv(file=saved.file, tokens=saved.tokens, size=size, took_s=saved.took_s)
        self._kept[saved.file] = found
        return found

    def writing(self, file: KvFile) -> bool:
        """Note that an engine is about to write a file; return whether nothing is in its way any more."""
        self._unwanted.discard(file)
        self._kept.pop(file, None)
        self._delete(self._path(file))
        return self._is_in_place() and not os.path.lexists(self._path(file))

    def drop(self, files: Iterable[KvFile]) -> None:
        """Delete files; one that is being written, when it is handed to `keep`."""
        for file in files:
            self._unwanted.add(file)
            self._kept.pop(file, None)
            self._delete(self._path(file))

    def clear(self) -> None:
        """Delete whatever lies there under names of ours: nobody knows whose it is."""
        self._kept.clear()
        if not self._is_in_place():
            return  # somebody deleted all of it
        try:
            found = sorted(self._folder.iterdir())
        except OSError as error:
            _LOG.warning("kv_file_stays", extra={"path": str(self._folder), "error": str(error)})
            return
        for path in found:
            if _OURS.fullmatch(path.name):
                self._delete(path)

    def is_for(self, model: ModelName, stamp: str) -> None:
        """Note which file a model is loaded from: with another one than before, nothing that was kept is of use."""
        if self._stamps.setdefault(model, stamp) != stamp:
            self._stamps[model] = stamp
            self.drop(tuple(self._kept))

    def _size(self) -> int:
        return sum(each.size for each in self._kept.values())

    def _path(self, file: KvFile) -> Path:
        return self._folder / kv_file_name(file)

    def _taken_in(self, path: Path) -> int:
        """Make a file nobody else's to read and return its size.

        Raises:
            OSError: there is no plain file with this one name.
        """
        # A pipe would hold us up without the flag.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or not self._is_in_place():
                raise OSError("it is no plain file of ours")
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
        return found.st_size

    def _is_in_place(self) -> bool:
        """Return whether the folder is still the one that it was."""
        return self._identity is not None and _identity(self._folder) == self._identity

    def _delete(self, path: Path) -> None:
        if not self._is_in_place():
            return
        try:
            if stat.S_ISDIR(path.lstat().st_mode):
                shutil.rmtree(path)
            else:
                path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            _LOG.warning("kv_file_stays", extra={"path": str(path), "error": str(error)})


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None
