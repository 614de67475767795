"""Tables on a terminal, and where output is kept: as wide as they need to be there."""

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table as Shown
from rich.text import Text

from luftpause.telemetry.printable import printable
from luftpause.testkit.bench.tables import Table

WIDTH: Final = 180
"""Where no terminal says how wide it is, characters."""
NARROW: Final = 80
_NAME_MAX: Final = 20
"""What rows are called stays on one line, if it is no longer: the names of arms are not."""

_LONG: Final = frozenset({"arguments", "because", "caller", "model", "models", "run", "state", "task", "tool", "why"})
"""Columns whose cells go over several lines where they have to."""


def print_table(title: str, table: Table) -> None:
    """Print a table with its title; an empty title is none."""
    shown = Shown(title=title or None, title_justify="left")
    for number, heading in enumerate(table[0]):
        is_name = number == 0 and all(len(row[0]) <= _NAME_MAX for row in table[1])
        shown.add_column(heading, justify="right" if number else "left", no_wrap=is_name, overflow="fold")
    for row in table[1]:
        shown.add_row(*row)
    console().print(shown)


def console() -> Console:
    """Return standard output, as wide as its terminal or COLUMNS says."""
    return Console(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDTH)


def safe_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], spare: Collection[str] = ()) -> Shown:
    """Return a table of texts that somebody else chose: none of them is markup, and nothing in them drives a terminal.

    Left out, so that there is room for the others: a column in which no row has anything, and on a narrow terminal
    those that are `spare`.
    """
    all_rows = list(rows)
    is_narrow = console().width < NARROW
    told = [
        any(row[place] for row in all_rows) and not (is_narrow and column in spare)
        for place, column in enumerate(columns)
    ]
    shown = Shown(title=title, title_justify="left", title_style="bold", header_style="dim", box=None)
    shown.pad_edge, shown.padding = False, (0, 2, 0, 0)
    for column in _chosen(columns, told):
        shown.add_column(column, overflow="fold", no_wrap=column not in _LONG)
    for row in all_rows:
        shown.add_row(*(Text(printable(cell)) for cell in _chosen(row, told)))
    return shown


def _chosen(row: Sequence[str], told: Sequence[bool]) -> list[str]:
    return [cell for cell, is_told in zip(row, told, strict=True) if is_told]
