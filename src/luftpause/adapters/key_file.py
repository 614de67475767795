"""A secret of this machine in a file that nobody else can read, made when it is not there yet."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

KEY_BYTES: Final = 32


class KeyFileError(Exception):
    """The file cannot be used. Its text tells why, and what would help."""


def key_in(path: Path) -> bytes:
    """Return the key that a file holds. A missing one is made, whole or not at all, even when several make it at once.

    Raises:
        KeyFileError: it cannot be read or written, others may read it, or it holds no key.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            return _read(path)
        return _made(path)
    except OSError as error:
        raise KeyFileError(f"{path.name}: {error.strerror or error}") from error


def _made(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        # A link never replaces what somebody else made meanwhile; theirs is the key then.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    return _read(path)


def _read(path: Path) -> bytes:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise KeyFileError(f"{path.name} can be read by others: chmod 600 it, or remove it to have a new one made")
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except ValueError as error:
        raise KeyFileError(f"{path.name} holds no key: remove it to have a new one made") from error
    if len(key) != KEY_BYTES:
        raise KeyFileError(f"{path.name} holds no key of {KEY_BYTES} bytes: remove it to have a new one made")
    return key
