"""What words a JSON schema has for types, what a reference in it points at, and how values are told to people."""

import re
from collections.abc import Mapping
from typing import Final, TypeGuard

ECMA_ESCAPE: Final = re.compile(r"\\u\{?([0-9a-fA-F]{4,6})\}?")
_SHOWN_MAX: Final = 60

KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int, float),
}


def kinds_of(schema: Mapping[str, object]) -> tuple[str, ...]:
    """Return the types that a schema names, or those of the only values that it allows; empty when it does not say."""
    wanted = schema.get("type")
    if isinstance(wanted, str):
        return (wanted,)
    if _is_names(wanted):
        return tuple(wanted)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    known = {type(choice) for choice in choices} if isinstance(choices, list) else set()
    return tuple(name for name in KINDS if known & set(KINDS[name]))


def is_of(value: object, kind: str) -> bool:
    """Say whether a value is of a type that JSON schemas name; of one that they do not, every value is."""
    if kind not in KINDS:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, KINDS[kind])


def target_of(reference: object, root: Mapping[str, object], otherwise: object = True) -> object:
    """Return what a reference within a schema points at, `otherwise` for what is not there or elsewhere."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return otherwise
    target: object = root
    for part in reference.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or name not in target:
            return otherwise
        target = target[name]
    return target


def shown(value: object) -> str:
    """Return a value as a message may repeat it: short, however long it is."""
    text = repr(value[: _SHOWN_MAX * 2] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _is_names(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
