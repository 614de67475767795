"""Putting a fragment into a client's own file, without touching what else stands there.

Files keep every line, comments included, but those whose value is another one now. What is missing is put where it
belongs. The outcome is read back to prove that it says what it should. What cannot be done safely is refused in words;
then a person does it.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final

from luftpause.cli.connecting import json_text, toml_text
from luftpause.cli.connecting.steps import Format

TABLES_DEEP: Final = 2
"""Down to here TOML's objects are tables with a header; below they are written inline."""

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class CannotMergeError(Exception):
    """The file cannot be changed safely. Its text says why, for people."""


def merged(text: str, fragment: Mapping[str, object], format: Format) -> str:
    """Return a file's text with a fragment in it; the same text where it is in already.

    Raises:
        CannotMergeError: the file is not what its format says, or says something else in a place that cannot be
            changed without rewriting it.
    """
    match format:
        case Format.JSON:
            return _merged_json(text, fragment)
        case Format.TOML:
            return _merged_toml(text, fragment)
        case Format.YAML:
            raise CannotMergeError("YAML files are not edited")


def shown(fragment: Mapping[str, object], format: Format) -> str:
    """Return a fragment as its file would have it."""
    if format is Format.TOML:
        return "".join(_toml_lines(fragment)).strip("\n")
    return json.dumps(fragment, indent=2, ensure_ascii=False)


def _merged_json(text: str, fragment: Mapping[str, object]) -> str:
    if not text.strip():
        return json.dumps(fragment, indent=2, ensure_ascii=False) + "\n" if fragment else text
    try:
        before = json_text.read(text).value
        if not isinstance(before, dict):
            raise CannotMergeError("it holds no JSON object")
        wanted = _laid_over(before, fragment)
        if wanted == before:
            return text
        after = json_text.laid_over(text, fragment)
        proven = json_text.read(after).value == wanted
    except json_text.NotJsonError as error:
        raise CannotMergeError(f"it is no JSON, not even with comments: {error}") from error
    if not proven:
        raise CannotMergeError("it cannot be changed without losing something")
    return after


def _merged_toml(text: str, fragment: Mapping[str, object]) -> str:
    before = _parsed(text)
    wanted = _laid_over(before, fragment)
    if wanted == before:
        return text
    joined = _with_tables(text, before, wanted, ())
    try:
        proven = joined is not None and tomllib.loads(joined) == wanted
    except tomllib.TOMLDecodeError:
        proven = False
    if joined is None or not proven:
        raise CannotMergeError("it already says something else there")
    return joined


def _with_tables(
    text: str | None, before: Mapping[str, object], wanted: Mapping[str, object], path: tuple[str, ...]
) -> str | None:
    """Return a text in which a table says what is wanted, and the tables below it; None where that cannot be."""
    new: dict[str, object] = {}
    for key, value in wanted.items():
        there = before.get(key)
        if text is None or there == value:
            continue
        if isinstance(value, Mapping) and len(path) < TABLES_DEEP:
            if isinstance(there, Mapping):
                text = _with_tables(text, there, value, (*path, key))
            else:
                text = None if key in before else _with_table_at_its_end(text, value, (*path, key))
        elif key in before:
            text = toml_text.exchanged(text, path, key, _toml(value))
        else:
            new[key] = value
    if not new or text is None:
        return text
    lines = [f"{_key(key)} = {_toml(value)}" for key, value in new.items()]
    if path:
        return toml_text.added(text, path, lines)
    newline = toml_text.newline_of(text)
    return "".join(line + newline for line in lines) + text


def _with_table_at_its_end(text: str, table: Mapping[str, object], path: tuple[str, ...]) -> str:
    newline = toml_text.newline_of(text)
    tail = "".join(_toml_lines(table, path)).strip("\n").replace("\n", newline)
    return f"{text.rstrip()}{newline}{newline}{tail}{newline}" if text.strip() else tail + newline


def _parsed(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotMergeError(f"it is no TOML: {error}") from error


def _laid_over(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Return both together; where both have a value, the upper one counts, and objects are joined key by key."""
    joined = dict(below)
    for key, value in above.items():
        there = joined.get(key)
        if isinstance(value, Mapping):
            joined[key] = _laid_over(there if isinstance(there, Mapping) else {}, value)
        else:
            joined[key] = value
    return joined


def _toml_lines(table: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield tables as lines."""
    inner = (
        {key: value for key, value in table.items() if isinstance(value, Mapping)} if len(path) < TABLES_DEEP else {}
    )
    plain = {key: value for key, value in table.items() if key not in inner}
    if path and (plain or not inner):
        yield f"\n[{'.'.join(map(_key, path))}]\n"
    for key, value in plain.items():
        yield f"{_key(key)} = {_toml(value)}\n"
    for key, value in inner.items():
        yield from _toml_lines(value, (*path, key))


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # TOML's basic strings know every escape that JSON's have.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if name and set(name) <= _PLAIN else _toml(name)
