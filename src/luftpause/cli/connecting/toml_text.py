"""TOML as people keep it: values exchanged and keys added where they belong, every other line and comment as it was.

Whoever calls this reads the outcome back: a line that only looks like a key, inside a long string, is found out so.
Knows no clients.
"""

import tomllib
from collections.abc import Sequence

Path = tuple[str, ...]


def exchanged(text: str, table: Path, key: str, value: str) -> str | None:
    """Return the text with a key's value exchanged; None where the key has no line of its own in that table."""
    lines = text.splitlines(keepends=True)
    for place in _lines_of(lines, table):
        line = lines[place]
        if key not in (_parsed(line) or {}):
            continue
        begins = line.index("=") + 1
        begins += len(line[begins:]) - len(line[begins:].lstrip(" \t"))
        lines[place] = line[:begins] + value + line[_value_end(line) :]
        return "".join(lines)
    return None


def added(text: str, table: Path, lines_to_add: Sequence[str]) -> str | None:
    """Return the text with lines at the end of a table; None where that has no header of its own."""
    lines = text.splitlines(keepends=True)
    headers = [place for place, line in enumerate(lines) if _header(line) == table]
    if not headers:
        return None
    last = max((place for place in _lines_of(lines, table) if lines[place].strip()), default=headers[0])
    newline = newline_of(text)
    if not lines[last].endswith("\n"):
        lines[last] += newline
    lines[last + 1 : last + 1] = [line + newline for line in lines_to_add]
    return "".join(lines)


def newline_of(text: str) -> str:
    """Return how the text ends its lines."""
    return "\r\n" if "\r\n" in text else "\n"


def _lines_of(lines: Sequence[str], table: Path) -> list[int]:
    """Return where the lines of a table are, its header left out."""
    here: Path | None = ()
    found: list[int] = []
    for place, line in enumerate(lines):
        if line.lstrip().startswith("[") and (header := _header(line)) is not None:
            here = header
        elif here == table:
            found.append(place)
    return found


def _header(line: str) -> Path | None:
    """Return what `[a.b]` names; of `[[a.b]]` something that no table has; None for any other line."""
    parsed = _parsed(line) if line.lstrip().startswith("[") else None
    path: list[str] = []
    node: object = parsed
    while isinstance(node, dict) and node:
        ((name, node),) = node.items()
        path.append(name)
    return None if parsed is None else (*path, *([""] if isinstance(node, list) else []))


def _value_end(line: str) -> int:
    """Return where a line's value ends: what follows is white space and perhaps a comment."""
    whole = _parsed(line)
    for place, letter in enumerate(line):
        if letter == "#" and _parsed(line[:place]) == whole:
            return len(line[:place].rstrip(" \t"))
    return len(line.rstrip())


def _parsed(line: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
