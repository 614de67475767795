"""Tables on a terminal, and where output is kept: as wide as they need to be there."""

import sys
from typing import Final

from rich.console import Console
from rich.table import Table as Shown

from luftpause.testkit.bench.tables import Table

WIDTH: Final = 180
"""Where no terminal says how wide it is, characters."""


def print_table(title: str, table: Table) -> None:
    """Print a table with its title; an empty title is none."""
    shown = Shown(title=title or None, title_justify="left")
    for number, heading in enumerate(table[0]):
        shown.add_column(heading, justify="left" if number == 0 else "right")
    for row in table[1]:
        shown.add_row(*row)
    Console(width=None if sys.stdout.isatty() else WIDTH).print(shown)
