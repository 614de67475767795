"""A tool call that was found in a text, and how JSON is read at a place of it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeGuard

NAME: Final = r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}"
"""A tool's name as models write it, with the dots of a namespace."""

_MENDED_MAX: Final = 20_000
_OPEN_MAX: Final = 8
_CUT_HEAD_MAX: Final = 400
_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"\s*")
_BRACKET: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_NAMED: Final = re.compile(rf'"(?:name|tool|tool_name|function)"\s*:\s*"({NAME})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCall:
    """A call as it was written.

    Attributes:
        arguments: JSON text; what there is of it when the call was cut.
        form: how it was written, one of few words.
        cut: the text ends in the middle of it.
    """

    name: str
    arguments: str
    form: str
    cut: bool = False


Reading: TypeAlias = tuple[tuple[TextCall, ...], int]
"""Calls, and where the text goes on behind them."""


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    """Say whether a decoded value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Say whether a decoded value is a list."""
    return isinstance(value, list)


def after_space(text: str, start: int) -> int:
    """Return the next place that is no white space."""
    found = _SPACE.match(text, start)
    return start if found is None else found.end()


def value_at(text: str, start: int) -> tuple[object, int] | None:
    """Return the JSON value that begins here, behind white space, and its end. None: there is none."""
    try:
        return _DECODER.raw_decode(text, after_space(text, start))
    except (ValueError, RecursionError):
        return None


def mended(text: str) -> object | None:
    """Return the value of a JSON text that lacks nothing but its last brackets; None for any other text."""
    if len(text) > _MENDED_MAX:
        return None
    still_open: list[str] = []
    for found in _BRACKET.finditer(text):
        match found[0]:
            case "{" | "[" as bracket:
                still_open.append("}" if bracket == "{" else "]")
            case "}" | "]" as bracket:
                if not still_open or still_open.pop() != bracket:
                    return None
            case '"':
                return None  # it ends within a string, and who knows how much of that is missing
            case _:
                pass
    if not still_open or len(still_open) > _OPEN_MAX:
        return None
    value = value_at(text.rstrip().rstrip(",") + "".join(reversed(still_open)), 0)
    return None if value is None else value[0]


def cut_call(text: str, start: int, form: str) -> TextCall | None:
    """Return the call that begins here in JSON and whose end is missing, if its name is there."""
    named = _NAMED.search(text, start, start + _CUT_HEAD_MAX)
    return None if named is None else TextCall(name=named[1], arguments=text[start:].strip(), form=form, cut=True)


def as_json(value: object) -> str:
    """Return a value as JSON that can be written down anywhere, half surrogate pairs included."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text
