"""Putting fragments into the files of the client: whole or not at all, with a copy of what stood there before."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from luftpause.cli.connecting.merging import CannotMergeError, merged, shown
from luftpause.cli.connecting.steps import Fragment
from luftpause.cli.failures import CommandFailedError

FILE_BYTES_MAX: Final = 4 << 20


class Files:
    """Merges fragments into files and says so. The text of before stays beside each; a crash leaves all whole."""

    def __init__(self) -> None:
        self._backed_up: set[Path] = set()

    def prove(self, fragments: Iterable[Fragment]) -> None:
        """Merge all fragments of a client and write nothing: either all of them can be put in or none is.

        Raises:
            CommandFailedError: a file would be left alone, for the reason that is said.
        """
        texts: dict[Path, str | None] = {}
        for fragment in fragments:
            target, before = _found(fragment)
            texts[target] = _laid_into(texts.get(target, before), fragment)

    def put_in(self, fragment: Fragment) -> None:
        """Merge a fragment into its file.

        Raises:
            CommandFailedError: it was left alone, for the reason that is said.
        """
        path = Path(fragment.path).expanduser()
        target, before = _found(fragment)
        after = _laid_into(before, fragment)
        if after == before:
            click.echo(f"{path}: nothing to change")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if before is None:
            click.echo(f"{path}: written")
        else:
            self._keep(target, before)
            click.echo(f"{path}: changed; the old text is in {_backup_of(target)}")
        self._backed_up.add(target)
        _put(target, after, like=target)

    def _keep(self, target: Path, text: str) -> None:
        """Keep the text of before this command, whose other recipes may change the same file again."""
        if target not in self._backed_up:
            _put(_backup_of(target), text, like=target)


def _found(fragment: Fragment) -> tuple[Path, str | None]:
    """Return the file that a fragment goes into, links followed, and what it holds.

    Raises:
        CommandFailedError: it is none that may be changed.
    """
    path = Path(fragment.path).expanduser()
    try:
        target = path.resolve() if path.is_symlink() else path
        if target.is_symlink():  # before Python 3.13 that is a RuntimeError
            raise CannotMergeError("it is a link in a circle of links")
        return target, _text_of(target)
    except (CannotMergeError, UnicodeDecodeError, RuntimeError) as problem:
        raise _left_alone(fragment, problem) from problem


def _laid_into(before: str | None, fragment: Fragment) -> str:
    mark, text = _without_mark(before or "")
    try:
        return mark + merged(text, fragment.content, fragment.format)
    except CannotMergeError as problem:
        raise _left_alone(fragment, problem) from problem


def _left_alone(fragment: Fragment, problem: Exception) -> CommandFailedError:
    path, by_hand = Path(fragment.path).expanduser(), shown(fragment.content, fragment.format)
    return CommandFailedError(f"{path} was left alone: {problem}. Put this in by hand:\n{by_hand}")


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


def _without_mark(text: str) -> tuple[str, str]:
    """Return the byte order mark that some editors put first, or nothing, and the text behind it."""
    return (text[0], text[1:]) if text.startswith("\ufeff") else ("", text)


def _text_of(path: Path) -> str | None:
    """Return what a file holds, line ends included; None where there is none.

    Raises:
        CannotMergeError: it is no file, nobody may write it, or it is too large for one of settings.
    """
    if not path.exists():
        return None
    if not path.is_file():
        raise CannotMergeError("it is no file")
    if not path.stat().st_mode & 0o222:
        raise CannotMergeError("it is read-only")
    if path.stat().st_size > FILE_BYTES_MAX:
        raise CannotMergeError(f"it is longer than {FILE_BYTES_MAX >> 20} MiB")
    return path.read_bytes().decode("utf-8")


def _put(path: Path, text: str, *, like: Path) -> None:
    """Write a file whole or not at all, with another one's owner and permissions, else readable by us only."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        if like.exists():
            seen = like.stat()
            if (seen.st_uid, seen.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(temporary, seen.st_uid, seen.st_gid)  # root may; others are told that they may not
            os.chmod(temporary, seen.st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
