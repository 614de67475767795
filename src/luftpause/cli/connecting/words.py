"""Variables and commands as a shell takes them."""

import shlex
from collections.abc import Sequence

from luftpause.cli.connecting.steps import Variables


def exports(variables: Variables) -> list[str]:
    """Return a line for each variable; what comes from another variable is only referred to."""
    plain = [f"export {name}={shlex.quote(value)}" for name, value in variables.values.items()]
    return [*plain, *(f'export {name}="${source}"' for name, source in variables.from_env.items())]


def command_line(argv: Sequence[str]) -> str:
    """Return a command; a word that begins with `$` stands for a variable's value."""
    return " ".join(f'"{word}"' if word.startswith("$") else shlex.quote(word) for word in argv)
