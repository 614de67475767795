"""Tables on a terminal, and where output is kept: as wide as they need to be there."""

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table as Shown
from rich.text import Text

from luftpause.telemetry.printable import printable
from luftpause.testkit.bench.tables import BEST, MET, MISSED, NONE, Table

WIDTH: Final = 180
"""Where no terminal says how wide it is, characters."""
NARROW: Final = 80
_NAME_MAX: Final = 20
"""What rows are called stays on one line, if it is no longer: the names of arms are not."""

_FRAME: Final = 3
"""What a frame and its spaces take of each column."""
_GAP: Final = 1
"""Between columns without a frame."""

_LONG: Final = frozenset({"arguments", "because", "caller", "model", "models", "run", "state", "task", "tool", "why"})
"""Columns whose cells go over several lines where they have to."""


def print_table(title: str, table: Table) -> None:
    """Print a table with its title; an empty title is none.

    On a terminal what is BEST of its column is bold, and verdicts have colours. No figure is broken up: where there is
    no room for the last columns they are left out, and that is said.
    """
    columns = [[heading, *(row[number] for row in table[1])] for number, heading in enumerate(table[0])]
    widths = _widths(columns, console().width)
    left_out: list[str] = []
    while widths is not None and not widths and len(columns) > 1:
        left_out.insert(0, columns.pop()[0])
        widths = _widths(columns, console().width)
    shown = Shown(title=title or None, title_justify="left")
    if widths:
        shown.box, shown.padding, shown.pad_edge, shown.header_style = None, (0, _GAP, 0, 0), False, "underline"
    for number, column in enumerate(columns):
        are_figures = all(cell[:1].isdigit() or cell in ("", NONE) for cell in column[1:])
        shown.add_column(
            column[0],
            justify="right" if are_figures else "left",
            width=widths[number] if widths else None,
            no_wrap=_is_name(number, column),
            overflow="fold",
        )
    for row in table[1]:
        shown.add_row(*(Text(cell, _style(cell)) for cell in row[: len(columns)]))
    console().print(shown)
    if left_out:
        console().print(f"No room here for {', '.join(left_out)}: widen the terminal, or set COLUMNS.")


def _is_name(number: int, column: Sequence[str]) -> bool:
    return number == 0 and all(len(cell) <= _NAME_MAX for cell in column)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Return how wide each column is where there is no room for a frame; None where there is, nothing where none fits.

    A column has room for its longest word at least; what is left goes to the narrowest.
    """
    whole = [max(map(len, column)) for column in columns]
    if sum(whole) + _FRAME * len(columns) + 1 <= room:
        return None
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    widths = [whole[at] if _is_name(at, column) else words[at] for at, column in enumerate(columns)]
    left = room - sum(widths) - _GAP * (len(columns) - 1)
    while left > 0 and (wanting := [at for at in range(len(columns)) if widths[at] < whole[at]]):
        widths[min(wanting, key=lambda at: (widths[at], at))] += 1
        left -= 1
    return widths if left >= 0 else []


def _style(cell: str) -> str:
    if cell == MET or cell.startswith(MISSED):
        return "green" if cell == MET else "red"
    return "bold" if cell.endswith(BEST) else ""


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
