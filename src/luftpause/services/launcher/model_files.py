"""Where model files may lie: inside one folder, whatever path, `..` or symlink leads there. Looked at twice."""

import os
from dataclasses import dataclass
from pathlib import Path

from luftpause.config.problems import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model's file or folder, resolved, and the folder that it must lie in; None for a file that may lie anywhere."""

    path: Path
    folder: Path | None

    def fault(self) -> str:
        """Return what is wrong with it now, in words; empty when it may be opened."""
        # Resolved anew, so that a symlink that was put there meanwhile leads nowhere.
        try:
            found = self.path.resolve()
        except (OSError, RuntimeError) as error:
            return f"{shown(str(self.path))} cannot be looked at: {error}"
        if self.folder is not None and not found.is_relative_to(self.folder):
            return f"{shown(str(self.path))} lies outside launcher.model_dir, {shown(str(self.folder))}"
        if found != self.path:
            return f"{shown(str(self.path))} leads elsewhere than it did, to {shown(str(found))}"
        if not found.exists():
            return f"there is no {shown(str(found))}"
        return ""

    def stamp(self) -> str:
        """Return what differs when the file was replaced or written to; empty where that cannot be seen."""
        try:
            seen = self.path.stat()
        except OSError:
            return ""
        return f"{seen.st_ino} {seen.st_size} {seen.st_mtime_ns}"

    def size_bytes(self) -> int:
        """Return how long the file is, or all files in the folder together; 0 where that cannot be seen."""
        try:
            if self.path.is_file():
                return self.path.stat().st_size
            return sum(entry.stat().st_size for entry in os.scandir(self.path) if entry.is_file())
        except OSError:
            return 0


def model_file(model_path: str, model_dir: str, bundled: Path | None) -> ModelFile | None:
    """Return the file that a model names, None when it names none. Whether it may be opened, `fault` says.

    Args:
        model_path: as configured, absolute or inside `model_dir`.
        model_dir: the folder that model files must lie in.
        bundled: the one file that may lie elsewhere; None when there is none.
    """
    if not model_path:
        return None
    folder = Path(model_dir).expanduser().resolve()
    # Resolved on both sides, so that neither `..` nor a symlink leads out of the folder.
    path = (folder / Path(model_path).expanduser()).resolve()
    is_bundled = bundled is not None and path == bundled.resolve()
    return ModelFile(path=path, folder=None if is_bundled else folder)
