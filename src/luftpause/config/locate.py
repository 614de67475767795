"""The line of each key in a TOML text. tomllib reads the values but does not say where they stand.

It trusts that the text is valid TOML, so it only has to find keys and to skip values. Keys inside inline tables and
lists are not looked for: their problems are reported at the key that holds them.
"""

import json
import re

from luftpause.config.problems import KeyPath

_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_NAMES = re.compile(_NAME)
_BLANK = re.compile(r"(?:\s+|#[^\n]*)*")
_HEADER = re.compile(rf"(\[\[?)[ \t]*({_NAME}(?:[ \t]*\.[ \t]*{_NAME})*)[ \t]*\]\]?")
_ASSIGNMENT = re.compile(rf"({_NAME}(?:[ \t]*\.[ \t]*{_NAME})*)[ \t]*=")
_VALUE_PIECE = re.compile(
    r'''"""(?:\\.|[^\\])*?"""(?!")'''
    r"""|'''.*?'''(?!')"""
    r'''|"(?:\\.|[^"\\\n])*"'''
    r"""|'[^'\n]*'|\#[^\n]*|[\[{\]}\n]|[^"'\#\[\]{}\n]+""",
    re.DOTALL,
)


def locate(text: str) -> dict[KeyPath, int]:
    """Return the line, counted from 1, of each table and key of a valid TOML text."""
    found: dict[KeyPath, int] = {}
    lengths: dict[KeyPath, int] = {}
    table: KeyPath = ()
    line = 1
    position = 0
    while True:
        start = position
        position = _end(_BLANK, text, position)
        line += text.count("\n", start, position)
        if header := _HEADER.match(text, position):
            table = _resolve(_split(header[2]), lengths)
            if header[1] == "[[":
                found.setdefault(table, line)
                lengths[table] = lengths.get(table, 0) + 1
                table = (*table, lengths[table] - 1)
            found[table] = line
            position = header.end()
        elif assignment := _ASSIGNMENT.match(text, position):
            path = table
            for name in _split(assignment[1]):
                path = (*path, name)
                found.setdefault(path, line)
            position = _after_value(text, assignment.end())
            line += text.count("\n", assignment.start(), position)
        else:
            return found


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _after_value(text: str, position: int) -> int:
    depth = 0
    while piece := _VALUE_PIECE.match(text, position):
        if piece[0] == "\n" and depth == 0:
            break
        depth += (piece[0] in ("[", "{")) - (piece[0] in ("]", "}"))
        position = piece.end()
    return position


def _split(names: str) -> list[str]:
    return [_unquoted(name) for name in _NAMES.findall(names)]


def _unquoted(name: str) -> str:
    if name.startswith("'"):
        return name[1:-1]
    if name.startswith('"'):
        try:
            return str(json.loads(name))
        except ValueError:  # TOML has a few escapes that JSON lacks; such a key is unknown in any case
            return name[1:-1]
    return name


def _resolve(names: list[str], lengths: dict[KeyPath, int]) -> KeyPath:
    # [a.b] below [[a]] belongs to the last item of a; the last name of a header is not resolved.
    path: KeyPath = ()
    for name in names[:-1]:
        path = (*path, name)
        if path in lengths:
            path = (*path, lengths[path] - 1)
    return (*path, names[-1])
