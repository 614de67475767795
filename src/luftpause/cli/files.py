"""Files that the command line names: a mistake is told before any work, not after it, and names its file."""

import os
from pathlib import Path

import click

from luftpause.cli.failures import CommandFailedError

PRINTED = "-"


class FilePath(click.Path):
    """A file. An empty name, which an unset variable of a shell leaves, is none."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """See `click.Path.convert`."""
        if not os.fspath(value):
            self.fail("it is empty: name a file", param, ctx)
        return super().convert(value, param, ctx)


class OutputFile(FilePath):
    """A file for what a command finds out, or `-`: standard output. It is tried at once, and left as it was."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, allow_dash=True)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """See `click.Path.convert`."""
        file = super().convert(value, param, ctx)
        if value != PRINTED:
            try:
                _try(Path(value))
            except OSError as error:
                self.fail(f"cannot write {value!r}: {_cause(error)}", param, ctx)
        return file


def write(body: bytes, to: str) -> None:
    """Write what was found out to an `OutputFile`.

    Raises:
        CommandFailedError: it cannot be written any more.
    """
    if to == PRINTED:
        click.echo(body, nl=False)
        return
    try:
        Path(to).write_bytes(body)
    except BrokenPipeError:
        raise  # nobody reads any more
    except OSError as error:
        raise CommandFailedError(f"{to}: cannot write it: {_cause(error)}") from error


def _try(file: Path) -> None:
    was_there = file.exists()
    if was_there and not file.is_file():
        return  # a pipe ends for its reader when it is closed: it is opened once, when there is something to say
    with file.open("ab"):
        pass
    if not was_there:
        file.unlink()


def _cause(error: OSError) -> str:
    return error.strerror or str(error)
