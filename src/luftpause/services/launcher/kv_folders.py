"""The folder for runs' KV that a launcher has for itself while it lives, held by a lock, below one for its name.

Files are called by counters, so two launchers of one name that live at once must not share a folder. Engines have its
path in their command lines, by which they are adopted: so a launcher takes over the folder of one that was killed.
"""

import contextlib
import fcntl
import logging
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from luftpause.services.launcher.kv_files import KvFiles

_LOG: Final = logging.getLogger("luftpause.launcher")
_LIFE: Final = re.compile(r"[0-9a-f]{16}")
_LOCK: Final = "lock"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_LOCK_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
_TRIES: Final = 8
"""Whoever starts at the same moment may take a folder that was just made."""


@contextmanager
def held_folder(shared: Path | None) -> Iterator[Path | None]:
    """A folder that nobody else looks into or uses, empty; None where there cannot be one: then no KV is kept.

    It goes at the end. After a fault it stays, unlocked, as after a kill: engines that are left may still be adopted.

    Args:
        shared: where all launchers of one name have theirs. It and the folder that it lies in may not be links.
    """
    with ExitStack() as stack:
        folder = None
        try:
            folder = None if shared is None else _claimed(shared, stack)
        except OSError as error:
            _LOG.warning("kv_parking_off", extra={"path": str(shared), "error": str(error)})
        yield folder
        if folder is not None:
            _remove(folder)


def _claimed(shared: Path, stack: ExitStack) -> Path:
    root = _opened(shared)
    stack.callback(os.close, root)
    own = None
    for name in sorted(filter(_LIFE.fullmatch, os.listdir(root))):
        lock = _locked(root, name)
        if lock is None:
            continue  # whoever has it lives
        if own is None:
            own = shared / name
            KvFiles(own, 0).clear()
            stack.callback(os.close, lock)
        else:
            _remove(shared / name)
            os.close(lock)
    return own or _made(shared, root, stack)


def _made(shared: Path, root: int, stack: ExitStack) -> Path:
    for _ in range(_TRIES):
        name = secrets.token_hex(8)
        os.mkdir(name, 0o700, dir_fd=root)
        lock = _locked(root, name)
        if lock is not None:
            stack.callback(os.close, lock)
            return shared / name
    raise OSError("others take every folder that is made")


def _opened(shared: Path) -> int:
    """Return the folder, made where it was not there, as a descriptor.

    Raises:
        OSError: it cannot be, or a link is in the way.
    """
    shared.parent.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(shared.parent, 0o700)
    parent = os.open(shared.parent, _FOLDER)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(shared.name, 0o700, dir_fd=parent)
        folder = os.open(shared.name, _FOLDER, dir_fd=parent)
    finally:
        os.close(parent)
    os.fchmod(folder, 0o700)
    return folder


def _locked(root: int, name: str) -> int | None:
    """Return the lock of a folder, taken; None where somebody else holds it, removed it, or it is no folder of ours.

    Raises:
        OSError: nothing can be locked there.
    """
    with ExitStack() as stack:
        try:
            folder = os.open(name, _FOLDER, dir_fd=root)
            stack.callback(os.close, folder)
            os.fchmod(folder, 0o700)
            lock = os.open(_LOCK, _LOCK_FILE, 0o600, dir_fd=folder)
        except OSError:
            return None
        given_up = stack.enter_context(ExitStack())
        given_up.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = os.stat(_LOCK, dir_fd=folder, follow_symlinks=False)
        except (BlockingIOError, FileNotFoundError):
            return None
        if not os.path.samestat(os.fstat(lock), there):
            return None  # its last holder removed it since it was opened: it keeps nobody out
        given_up.pop_all()
        return lock


def _remove(folder: Path) -> None:
    """Remove a folder whose lock is ours; what somebody else put there stays, and the folder with it."""
    KvFiles(folder, 0).clear()
    with contextlib.suppress(OSError):
        (folder / _LOCK).unlink()
        folder.rmdir()
