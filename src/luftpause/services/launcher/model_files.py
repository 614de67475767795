"""Where model files may lie: inside one folder, whatever path, `..` or symlink leads there. Looked at twice.

An engine opens more than the path that it is given: all that lies in a folder, and each part of a file in parts.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from luftpause.config.problems import shown

_PART: Final = re.compile(r"(.+-)00001(-of-(\d{5})\.gguf)")
"""The first of several files that hold one model; llama.cpp opens the others by itself."""
_ENTRIES_MAX: Final = 20_000
"""Of a folder: a model has a few hundred at most."""
_UNREADABLE: Final = (OSError, RuntimeError, ValueError)
"""What looking at a path raises: it is no path, too long, a ring of links, of no user's home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model's file or folder, resolved, and the folder that it must lie in; None for a file that may lie anywhere."""

    path: Path
    folder: Path | None

    def fault(self) -> str:
        """Return what is wrong with it now, in words; empty when it may be opened."""
        said = shown(str(self.path))
        try:
            # Resolved anew, so that a symlink that was put there meanwhile leads nowhere.
            found = self.path.resolve()
            if self.folder is not None and not found.is_relative_to(self.folder):
                return f"{said} lies outside launcher.model_dir, {shown(str(self.folder))}"
            if found != self.path:
                return f"{said} leads elsewhere than it did, to {shown(str(found))}"
            return self._fault_of_all() if found.exists() else f"there is no {said}"
        except _UNREADABLE as error:
            return f"{said} cannot be looked at: {error}"

    def _fault_of_all(self) -> str:
        """Return what is wrong with what is opened beside the path itself."""
        for number, at in enumerate(chain(self._parts(), self._below())):
            real = at.resolve()
            if not real.exists():
                return f"there is no {shown(at.name)}"
            if self.folder is not None and not real.is_relative_to(self.folder):
                return f"{shown(at.name)} lies outside launcher.model_dir: it leads to {shown(str(real))}"
            if number == _ENTRIES_MAX:
                return f"{shown(self.path.name)} has more than {_ENTRIES_MAX} entries, which is no model's folder"
        return ""

    def stamp(self) -> str:
        """Return what differs when the file was replaced or written to; empty where that cannot be seen."""
        try:
            seen = [path.stat() for path in (self.path, *self._parts())]
        except _UNREADABLE:
            return ""
        return " ".join(f"{each.st_ino} {each.st_size} {each.st_mtime_ns}" for each in seen)

    def size_bytes(self) -> int:
        """Return how long the file is, or all its parts, or all files in the folder; 0 where that cannot be seen."""
        try:
            if self.path.is_file():
                return sum(path.stat().st_size for path in (self.path, *self._parts()))
            return sum(entry.stat().st_size for entry in os.scandir(self.path) if entry.is_file())
        except _UNREADABLE:
            return 0

    def _parts(self) -> Iterator[Path]:
        """Yield the further parts of a file in parts."""
        first = _PART.fullmatch(self.path.name)
        if first is not None:
            for number in range(2, int(first[3]) + 1):
                yield self.path.with_name(f"{first[1]}{number:05}{first[2]}")

    def _below(self) -> Iterator[Path]:
        """Yield all that lies in a folder, and in what its links lead to; each folder once."""
        seen: set[Path] = set()
        folders = [self.path] if self.path.is_dir() else []
        while folders:
            folder = folders.pop()
            if folder not in seen:
                seen.add(folder)
                for entry in folder.iterdir():
                    yield entry
                    if entry.is_dir():
                        folders.append(entry.resolve())


def model_file(model_path: str, model_dir: str, bundled: Path | None) -> ModelFile | None:
    """Return the file that a model names, None when it names none. Whether it may be opened, `fault` says.

    Args:
        model_path: as configured, absolute or inside `model_dir`.
        model_dir: the folder that model files must lie in.
        bundled: the one file that may lie elsewhere; None when there is none.
    """
    if not model_path:
        return None
    folder = _resolved(_expanded(model_dir))
    # Resolved on both sides, so that neither `..` nor a symlink leads out of the folder.
    path = _resolved(folder / _expanded(model_path))
    is_bundled = bundled is not None and path == bundled.resolve()
    return ModelFile(path=path, folder=None if is_bundled else folder)


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # nobody's home: a name like any other
        return Path(path)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except _UNREADABLE:  # `fault` meets the same, and says it
        return path
