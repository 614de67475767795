"""What is wrong with a configuration, one clear line each. Knows how to say it, not how to find it."""

import json
import re
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]
"""A key from the root down: names of tables and keys, indices of list items."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One line: where it was written (file and line, variable, command line), the key if any, and what is wrong."""

    where: str
    key: str = ""
    what: str

    def __str__(self) -> str:
        """Return the line."""
        return ": ".join(part for part in (self.where, self.key, self.what) if part)


class ConfigError(Exception):
    """The configuration cannot be used. `problems` says why, at least one."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def dotted(path: KeyPath) -> str:
    """Return a key as people write it: `launcher.models[0].name`; names that need quotes get them."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _BARE.fullmatch(part) else shown(part)
            text += f".{name}" if text else name
    return text


def shown(value: object) -> str:
    """Return a value for a message: on one line, cut, with everything unprintable escaped."""
    match value:
        case bool():
            text = "true" if value else "false"
        case int() if value.bit_length() > 200:
            text = "a very large number"
        case list():
            text = "a list"
        case dict():
            text = "a table"
        case str() if len(value) > _SHOWN_MAX:
            text = repr(value[:_SHOWN_MAX]) + "…"
        case str() | int() | float():
            text = repr(value)
        case None:
            text = "null"
        case _:
            text = f"the date or time {value}"
    return text


def as_toml(value: object) -> str:
    """Return a plain value roughly as TOML would have it; ASCII only, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    return json.dumps(value, default=str)
