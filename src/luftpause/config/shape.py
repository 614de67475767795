"""What the schema says about a key, in words: what it expects, which keys are known, which of them is nearest.

It finds what is wrong with a tree of plain values; where the values came from is not its business.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import inspect

from luftpause.config.problems import KeyPath, dotted, shown
from luftpause.config.schema import Config

Finding = tuple[KeyPath, str]
"""A key and what is wrong with it."""

_LISTED_MAX = 12
_SECRET_SUFFIX = "_env"


def root() -> inspect.StructType:
    """Return the type of the whole file."""
    kind = inspect.type_info(Config)
    assert isinstance(kind, inspect.StructType)
    return kind


def plain(kind: inspect.Type) -> inspect.Type:
    """Return a type without its documentation."""
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def type_at(path: KeyPath) -> inspect.Type | None:
    """Return the type that the schema wants at a key, None for an unknown key."""
    kind: inspect.Type = root()
    for part in path:
        inner = plain(kind)
        if isinstance(inner, inspect.StructType) and isinstance(part, str):
            fields = {field.encode_name: field.type for field in inner.fields}
            if part not in fields:
                return None
            kind = fields[part]
        elif isinstance(inner, inspect.ListType) and isinstance(part, int):
            kind = inner.item_type
        elif isinstance(inner, inspect.DictType) and isinstance(part, str):
            kind = inner.value_type
        else:
            return None
    return kind


def expectation(kind: inspect.Type) -> str:
    """Return what a type accepts, as the end of the sentence "expected …"."""
    match plain(kind):
        case inspect.LiteralType(values=values):
            said = _one_of(values)
        case inspect.StrType():
            said = _text_expectation(kind)
        case inspect.IntType(ge=low, le=high):
            said = "a whole number" if low is None or high is None else f"a whole number from {low} to {high}"
        case inspect.FloatType():
            said = "a number"
        case inspect.BoolType():
            said = "true or false"
        case inspect.ListType(item_type=item):
            is_table = isinstance(plain(item), inspect.StructType)
            said = "a list of tables" if is_table else f"a list, each {expectation(item)}"
        case inspect.DictType(value_type=item):
            is_text = isinstance(plain(item), inspect.StrType)
            said = "a table of strings" if is_text else f"a table, each {expectation(item)}"
        case inspect.StructType():
            said = "a table"
        case _:
            raise TypeError(f"config.shape has no words for {kind}")
    return said


def faults(value: object, kind: inspect.Type, path: KeyPath = ()) -> Iterator[Finding]:
    """Yield what is wrong with a tree of plain values, in the order of the tree."""
    inner = plain(kind)
    if isinstance(inner, inspect.StructType) and isinstance(value, dict):
        yield from _table_faults(value, inner, path)
    elif isinstance(inner, inspect.ListType) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from faults(item, inner.item_type, (*path, index))
    elif isinstance(inner, inspect.DictType) and isinstance(value, dict):
        for key, item in value.items():
            yield from faults(item, inner.value_type, (*path, key))
    elif not _fits(value, inner):
        got = "" if _is_secret(path) else f", got {shown(value)}"
        hint = ""
        if isinstance(inner, inspect.ListType) and isinstance(plain(inner.item_type), inspect.StructType):
            hint = f"; in the file each begins with [[{dotted(path)}]]"
        yield path, f"expected {expectation(kind)}{got}{hint}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistyped one probably meant."""
    close = difflib.get_close_matches(name[:64].lower().replace("-", "_"), list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def unknown_key(path: KeyPath, known: Iterable[str]) -> str:
    """Return the sentence about an unknown key: the nearest known one beside it, or all that could stand there."""
    names = list(known)
    said = f"unknown key {_quoted(path)}"
    close = nearest(str(path[-1]), names)
    if close is not None:
        return f"{said} — did you mean {_quoted((*path[:-1], close))}?"
    elsewhere = [key for key in known_keys() if key.rpartition(".")[2] == path[-1]]
    if elsewhere:
        return f"{said} — did you mean {' or '.join(repr(key) for key in elsewhere[:3])}?"
    rest = ", …" if len(names) > _LISTED_MAX else ""
    return f"{said} — known here: {', '.join(names[:_LISTED_MAX])}{rest}"


def known_keys() -> list[str]:
    """Return every key outside lists, dotted: those that a variable or `--set` can name."""
    return [dotted(path) for path, _ in _keys(root(), ())]


def _keys(kind: inspect.StructType, path: KeyPath) -> Iterator[tuple[KeyPath, inspect.Type]]:
    for field in kind.fields:
        here = (*path, field.encode_name)
        inner = plain(field.type)
        yield here, field.type
        if isinstance(inner, inspect.StructType):
            yield from _keys(inner, here)


def _table_faults(table: Mapping[str, object], kind: inspect.StructType, path: KeyPath) -> Iterator[Finding]:
    fields = {field.encode_name: field for field in kind.fields}
    for key, value in table.items():
        if key in fields:
            yield from faults(value, fields[key].type, (*path, key))
        else:
            yield (*path, key), unknown_key((*path, key), fields)
    for name, field in fields.items():
        if field.required and name not in table:
            yield (*path, name), f"is missing; expected {expectation(field.type)}"


def _fits(value: object, kind: inspect.Type) -> bool:
    match kind:
        case inspect.LiteralType(values=values):
            fits = isinstance(value, str) and value in values
        case inspect.StrType():
            fits = isinstance(value, str) and _text_fits(value, kind)
        case inspect.IntType():
            fits = isinstance(value, int) and not isinstance(value, bool) and _whole_fits(value, kind)
        case inspect.FloatType():
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.BoolType():
            fits = isinstance(value, bool)
        case _:
            fits = False
    return fits


def _whole_fits(value: int, kind: inspect.IntType) -> bool:
    return (kind.ge is None or value >= kind.ge) and (kind.le is None or value <= kind.le)


def _text_fits(value: str, kind: inspect.StrType) -> bool:
    is_long_enough = len(value) >= (kind.min_length or 0)
    is_short_enough = kind.max_length is None or len(value) <= kind.max_length
    return is_long_enough and is_short_enough and (kind.pattern is None or bool(re.fullmatch(kind.pattern, value)))


def _text_expectation(kind: inspect.Type) -> str:
    schema = (kind.extra_json_schema or {}) if isinstance(kind, inspect.Metadata) else {}
    examples = schema.get("examples") or []
    such_as = f" such as {', '.join(repr(example) for example in examples)}" if examples else ""
    return f"a {schema.get('title', 'string')}{such_as}"


def _one_of(values: tuple[object, ...]) -> str:
    listed = ", ".join(repr(value) for value in values)
    return f"one of {listed}" if len(values) > 1 else listed


def _is_secret(path: KeyPath) -> bool:
    return any(isinstance(part, str) and (part.endswith(_SECRET_SUFFIX) or part == "env") for part in path)


def _quoted(path: KeyPath) -> str:
    key = dotted(path)
    return key if "'" in key or '"' in key else f"'{key}'"
