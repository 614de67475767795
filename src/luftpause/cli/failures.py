"""What a person sees when a command fails: one line, the way out, and an exit code. Never a stack trace for a mistake.

Exit codes: 0 fine, 1 failed while running, 2 wrong usage or configuration.
"""

import errno
import re
import socket
from dataclasses import dataclass

import click

from luftpause.assembly.start_failed import StartFailedError
from luftpause.config.problems import ConfigError
from luftpause.telemetry.printable import printable

FAILED = 1
MISUSED = 2

_BIND = re.compile(r"bind on address \(?'?([^',()]+)'?, (\d+)")


class CommandFailedError(Exception):
    """A command could not do its work. Its text is one line: what failed and, where there is one, the way out."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in words, a line for each thing that is wrong, and the exit code that goes with it."""

    lines: tuple[str, ...]
    exit_code: int

    def show(self) -> None:
        """Print the lines to standard error."""
        for line in self.lines:
            click.echo(f"error: {printable(line)}", err=True)


def failure_of(error: BaseException) -> Failure | None:
    """Return a failure that a person can mend in words; None for what is a bug and deserves its stack trace."""
    match error:
        case BaseExceptionGroup():
            return _group(error)
        case ConfigError():
            return Failure(tuple(str(problem) for problem in error.problems), MISUSED)
        case CommandFailedError() | StartFailedError():
            return Failure((str(error),), FAILED)
        case OSError():
            return Failure((_os_error(error),), FAILED)
    return None


def _group(group: BaseExceptionGroup[BaseException]) -> Failure | None:
    parts = [failure_of(error) for error in group.exceptions]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    lines = dict.fromkeys(line for part in known for line in part.lines)
    return Failure(tuple(lines), max(part.exit_code for part in known))


def _os_error(error: OSError) -> str:
    said = str(error.strerror or error)
    place = _BIND.search(str(error))
    on_address = f" on {place[1]}:{place[2]}" if place else ""
    if error.errno == errno.EADDRINUSE:
        said = f"cannot listen{on_address}: the port is taken; free it or choose another"
    elif error.errno == errno.EADDRNOTAVAIL:
        said = f"cannot listen{on_address}: this machine has no such address"
    elif error.errno in (errno.EACCES, errno.EPERM) and place:
        said = f"cannot listen{on_address}: not allowed; choose a port above 1023"
    elif isinstance(error, socket.gaierror):
        said = f"unknown host: {said}"
    elif error.filename is not None:
        said = f"{error.filename}: {said}"
    return said
