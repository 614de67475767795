"""The drafts of JSON Schema as classes of `jsonschema` that cannot be held up, nor be made to fetch anything.

Schemas come from tool servers and clients, values from models, and both are judged in the process of the event loop. So
every keyword costs steps out of a purse; patterns run on RE2, whose time grows with the text alone; items are told
apart in one pass. A keyword that cannot be judged (no such type, a pattern beyond RE2, a reference to nowhere) says
nothing, nor does one that turns such silence around: `not`, `if`, `oneOf` and `contains`.
"""

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, cast

import jsonschema
import re2
from jsonschema.exceptions import UndefinedTypeCheck, UnknownType, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

from luftpause.services.runtime.schema_formats import FORMATS
from luftpause.services.runtime.schema_words import ECMA_ESCAPE, shown

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


class Judge(Protocol):
    """What keywords use of a validator of the library."""

    def descend(
        self, instance: object, schema: object, path: object = None, schema_path: object = None
    ) -> Iterable[ValidationError]:
        """Judge by a part of the schema."""
        ...


PATTERN_MEMORY_BYTES: Final = 1 << 20
_PATTERNS_KEPT: Final = 512
_SIZE_FOR_A_STEP: Final = 64
_UNREAD: Final = ("type", "minLength", "maxLength")
"""Keywords that judge a text without reading it, so that its length costs nothing."""

_TURNS_AROUND: Final = ("not", "if", "oneOf", "contains", "disallow", "unevaluatedProperties", "unevaluatedItems")
_SENSELESS: Final = (
    *(TypeError, AttributeError, LookupError, ValueError, ArithmeticError),
    *(UndefinedTypeCheck, UnknownType, Unresolvable),
)
"""What the library raises at a keyword whose value makes no sense."""


class TooMuchError(Exception):
    """Judging takes more steps than it is worth."""


@dataclass(slots=True)
class Purse:
    """The steps that are left, and how many keywords could not be judged.

    Attributes:
        mixed: the schema has patterns for properties somewhere, so `unevaluatedProperties` is not judged.
    """

    steps: int
    silent: int = 0
    mixed: bool = False

    def spend(self, steps: int) -> None:
        """Take steps out.

        Raises:
            TooMuchError: there are not so many.
        """
        self.steps -= steps
        if self.steps < 0:
            raise TooMuchError


PURSE: Final[ContextVar[Purse]] = ContextVar("luftpause_schema_purse")


@functools.lru_cache(maxsize=_PATTERNS_KEPT)
def compiled(pattern: str) -> "re2._Regexp[str] | str":
    """Return a pattern to search with, or why there is none."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY_BYTES
    try:
        return re2.compile(ECMA_ESCAPE.sub(r"\\x{\1}", pattern), options)
    except re2.error as error:
        told = error.args[0] if error.args else "it is no pattern"
        return told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)


def found_in(pattern: object, text: str) -> bool:
    """Return whether a pattern occurs in a text.

    Raises:
        ValueError: there is no such pattern.
    """
    search = compiled(pattern) if isinstance(pattern, str) else "it is no text"
    if isinstance(search, str):
        raise ValueError(search)
    return search.search(text) is not None


def _pattern(_judge: Judge, pattern: object, instance: object, _schema: object) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not found_in(pattern, instance):
        yield ValidationError(f"{shown(instance)} does not match {shown(pattern)}")


def _pattern_properties(
    judge: Judge, patterns: Mapping[str, object], instance: object, _schema: object
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, schema in patterns.items():
            for name, member in instance.items():
                PURSE.get().spend(1)
                if found_in(pattern, name):
                    yield from judge.descend(member, schema, path=name, schema_path=pattern)


def _additional_properties(
    judge: Judge, more: object, instance: object, schema: Mapping[str, dict[str, object]]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    listed, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [name for name in instance if name not in listed]
    for name in extras:
        PURSE.get().spend(1 + len(patterns))
        if any(found_in(pattern, name) for pattern in patterns):
            continue
        if more is False:
            yield ValidationError(f"Additional properties are not allowed ({shown(name)} was unexpected)")
        elif isinstance(more, Mapping):
            yield from judge.descend(instance[name], more, path=name)


def _unique_items(_judge: Judge, unique: object, instance: object, _schema: object) -> Iterator[ValidationError]:
    if not unique or not isinstance(instance, list):
        return
    seen: set[str] = set()
    for item in instance:
        said = json.dumps(_plain(item), sort_keys=True)
        PURSE.get().spend(1 + len(said) // _SIZE_FOR_A_STEP)
        if said in seen:
            yield ValidationError(f"{shown(item)} is there more than once")
            return
        seen.add(said)


def _plain(value: object) -> object:
    """Return a value in which numbers that JSON holds for the same are the same."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _bounded(name: str, keyword: Keyword) -> Keyword:
    def judged(judge: Judge, value: object, instance: object, schema: object) -> Iterator[ValidationError]:
        purse = PURSE.get()
        read = 0 if name in _UNREAD and isinstance(instance, str) else _size(instance)
        purse.spend(1 + (_size(value) + read) // _SIZE_FOR_A_STEP)
        before = purse.silent
        if purse.mixed and name == "unevaluatedProperties":
            purse.silent += 1
            return
        try:
            if name not in _TURNS_AROUND:
                yield from keyword(judge, value, instance, schema) or ()
                return
            told = list(keyword(judge, value, instance, schema) or ())
        except _SENSELESS:
            purse.silent += 1
            return
        if purse.silent == before:
            yield from told

    return judged


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _draft(plain: type[Validator]) -> type[Validator]:
    own: dict[str, Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    keywords = {**plain.VALIDATORS, **{name: own[name] for name in own if name in plain.VALIDATORS}}
    bounded = {name: _bounded(name, keyword) for name, keyword in keywords.items()}
    return cast(Callable[..., type[Validator]], extend)(plain, bounded, format_checker=FORMATS)


LATEST: Final = "https://json-schema.org/draft/2020-12/schema"
DRAFTS: Final[Mapping[str, type[Validator]]] = {
    LATEST: _draft(jsonschema.Draft202012Validator),
    "https://json-schema.org/draft/2019-09/schema": _draft(jsonschema.Draft201909Validator),
    "http://json-schema.org/draft-07/schema": _draft(jsonschema.Draft7Validator),
    "http://json-schema.org/draft-06/schema": _draft(jsonschema.Draft6Validator),
    "http://json-schema.org/draft-04/schema": _draft(jsonschema.Draft4Validator),
    "http://json-schema.org/draft-03/schema": _draft(jsonschema.Draft3Validator),
}
"""By the name that a schema's `$schema` says, without an empty fragment."""
