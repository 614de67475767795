"""Putting a fragment into a client's own file, without touching what else stands there.

Files keep every line, comments included. Into JSON the missing members are put where they belong; to TOML what is
missing is added at the top or at the end. The outcome is read back to prove that it says what it should. What cannot be
done safely is refused in words; then a person does it.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final

from luftpause.cli.connecting import json_text
from luftpause.cli.connecting.steps import Format

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
    top, tables = _missing(before, fragment)
    head = "".join(f"{_key(key)} = {_toml(value)}\n" for key, value in top.items())
    tail = "".join(_toml_lines(tables))
    joined = f"{head}{text}"
    if tail:
        joined = f"{joined.rstrip()}\n\n{tail.strip()}\n" if joined.strip() else tail.lstrip("\n")
    try:
        proven = tomllib.loads(joined) == wanted
    except tomllib.TOMLDecodeError:
        proven = False
    if not proven:
        raise CannotMergeError("it already says something else there")
    return joined


def _parsed(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotMergeError(f"it is no TOML: {error}") from error


def _missing(
    before: Mapping[str, object], fragment: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the top-level values and the tables of a fragment that the file does not have."""
    top: dict[str, object] = {}
    tables: dict[str, object] = {}
    for key, value in fragment.items():
        there = before.get(key)
        if isinstance(value, Mapping):
            if isinstance(there, Mapping):
                value = {name: inner for name, inner in value.items() if there.get(name) != inner}
            if value or not isinstance(there, Mapping):
                tables[key] = value
        elif there != value:
            top[key] = value
    return top, tables


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
    """Yield tables as lines. Objects at the second level and below are written inline."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)} if len(path) < 2 else {}
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
