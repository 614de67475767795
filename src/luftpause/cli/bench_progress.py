"""How far `luftpause bench` is, on standard error: a bar on a terminal, else a line when it is over."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from luftpause.cli.say import say

_MINUTE: Final = 60


@dataclass(slots=True)
class Counted:
    """Counts what was done, where nobody watches."""

    number: int = 0

    def begins(self, what: str) -> None:
        """Nobody watches."""

    def done(self, what: str) -> None:
        """One more."""
        self.number += 1


@dataclass(slots=True)
class Bar:
    """Says what is measured at the moment, as far as anybody tells, else what was measured last."""

    bar: Progress
    task: TaskID

    def begins(self, what: str) -> None:
        """Show it."""
        self.bar.update(self.task, description=what)

    def done(self, what: str) -> None:
        """Count it."""
        self.bar.update(self.task, advance=1, description=what)


@contextmanager
def progress(name: str, count: int, expected_s: float | None) -> Iterator[Counted | Bar]:
    """Show how far it is, while a block measures.

    Args:
        name: of the workload.
        count: so many measurements.
        expected_s: about how long they take, if that is known; it is said before they begin.
    """
    if expected_s is not None:
        say(f"{name}: {count} measurements, {_about(expected_s)}", err=True)
    if not sys.stderr.isatty():
        counted = Counted()
        yield counted
        say(f"{name}: {counted.number} of {count} measurements are done", err=True)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
        yield Bar(bar, bar.add_task(name, total=count))


def _about(seconds: float) -> str:
    return f"about {seconds / _MINUTE:.0f} min" if seconds >= 1.5 * _MINUTE else f"about {seconds:.0f} s"
