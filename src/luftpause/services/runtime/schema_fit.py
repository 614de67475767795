"""Whether a value fits a JSON schema, judged within a fixed number of steps.

Schemas come from tool servers and arguments from models, so neither may cost much: a pattern that backtracks, or a
schema that refers to itself without end, must not hold up everybody else. What cannot be judged in few steps counts as
fitting, for a tool server checks its own arguments anyway. For the same reason only keywords that narrow are looked at:
`type`, `enum`, `const`, `required`, `properties`, `additionalProperties`, `items`, `prefixItems`, `allOf`, `anyOf`,
`oneOf` (as `anyOf`), `$ref` within the schema, and the bounds of numbers and lengths. `pattern` and all else is left to
the server. So a complaint is always right, and that there is none promises nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Final, TypeGuard

STEPS_MAX: Final = 10_000
_DEPTH_MAX: Final = 100
_SHOWN_MAX: Final = 60

_BOUNDS: Final[tuple[tuple[str, Callable[[float, float], bool], str], ...]] = (
    ("minimum", ge, "less than the minimum of"),
    ("maximum", le, "greater than the maximum of"),
    ("exclusiveMinimum", gt, "not greater than"),
    ("exclusiveMaximum", lt, "not less than"),
)
KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int, float),
}
_LENGTHS: Final = (("Length", str), ("Items", list | tuple), ("Properties", dict))


class _CannotJudgeError(Exception):
    """It takes more steps than it is worth."""


def misfit(value: object, schema: Mapping[str, object], *, part: object = None) -> str:
    """Return what is wrong with a value in one short sentence, empty when it fits or cannot be judged.

    With `part` it is judged by that part of the schema.
    """
    try:
        return _Judge(schema).complaint(value, schema if part is None else part, ())
    except _CannotJudgeError:
        return ""


def kinds_of(schema: Mapping[str, object]) -> tuple[str, ...]:
    """Return the types that a schema names, or those of the only values that it allows; empty when it does not say."""
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted
    if _is_names(names):
        return tuple(names)
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


class _Judge:
    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._steps = 0
        self._depth = 0

    def complaint(self, value: object, schema: object, path: tuple[object, ...]) -> str:
        """Return the first thing that is wrong at a place, empty for none."""
        self._spend(1)
        if schema is False:
            return _at(path, f"{shown(value)} is not allowed")
        # A schema with an id of its own is a document of its own: what it refers to is elsewhere.
        if not isinstance(schema, Mapping) or ("$id" in schema and schema is not self._root):
            return ""
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise _CannotJudgeError
        try:
            if "$ref" in schema:
                # Older drafts ignore whatever stands beside it.
                return self.complaint(value, target_of(schema["$ref"], self._root), path)
            plain = _wrong_kind(value, schema) or _out_of_bounds(value, schema)
            return (
                (_at(path, plain) if plain else "")
                or self._in_members(value, schema, path)
                or self._in_items(value, schema, path)
                or self._in_branches(value, schema, path)
            )
        finally:
            self._depth -= 1

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > STEPS_MAX:
            raise _CannotJudgeError

    def _in_members(self, value: object, schema: Mapping[str, object], path: tuple[object, ...]) -> str:
        if not isinstance(value, dict):
            return ""
        required = schema.get("required")
        missing = [name for name in required if name not in value] if _is_names(required) else []
        if missing:
            return _at(path, f"{shown(missing[0])} is a required property")
        properties = schema.get("properties", {})
        listed = properties if isinstance(properties, Mapping) else {}
        more = True if "patternProperties" in schema else schema.get("additionalProperties", True)
        self._spend(len(value))
        for name, member in value.items():
            if name not in listed and more is False:
                return _at(path, f"Additional properties are not allowed ({shown(name)} was unexpected)")
            told = self.complaint(member, listed.get(name, more), (*path, name))
            if told:
                return told
        return ""

    def _in_items(self, value: object, schema: Mapping[str, object], path: tuple[object, ...]) -> str:
        if not isinstance(value, list | tuple):
            return ""
        items = schema.get("items", True)
        first = schema.get("prefixItems", items)
        first = first if isinstance(first, list) else []
        rest = True if isinstance(items, list) else items
        for place, item in enumerate(value):
            told = self.complaint(item, first[place] if place < len(first) else rest, (*path, place))
            if told:
                return told
        return ""

    def _in_branches(self, value: object, schema: Mapping[str, object], path: tuple[object, ...]) -> str:
        every = schema.get("allOf")
        for branch in every if isinstance(every, list) else ():
            told = self.complaint(value, branch, path)
            if told:
                return told
        for keyword in ("anyOf", "oneOf"):
            branches = schema.get(keyword)
            if not isinstance(branches, list) or not branches:
                continue
            complaints = [self.complaint(value, branch, path) for branch in branches]
            if all(complaints):
                return complaints[0] if len(complaints) == 1 else f"{complaints[0]}, nor does any other form fit"
        return ""


def _wrong_kind(value: object, schema: Mapping[str, object]) -> str:
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted
    if _is_names(names) and names and not any(is_of(value, name) for name in names):
        return f"{shown(value)} is not of type {', '.join(map(shown, names))}"
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"{shown(value)} is not one of {shown(choices)}"
    if "const" in schema and value != schema["const"]:
        return f"{shown(schema['const'])} was expected, not {shown(value)}"
    return ""


def _out_of_bounds(value: object, schema: Mapping[str, object]) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for keyword, holds, told in _BOUNDS:
            bound = schema.get(keyword)
            if isinstance(bound, int | float) and not isinstance(bound, bool) and not holds(value, bound):
                return f"{shown(value)} is {told} {shown(bound)}"
    for what, kind in _LENGTHS:
        if isinstance(value, kind):
            least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
            if isinstance(least, int | float) and len(value) < least:
                return f"{shown(value)} is too short, the least is {shown(least)}"
            if isinstance(most, int | float) and len(value) > most:
                return f"{shown(value)} is too long, the most is {shown(most)}"
    return ""


def _is_names(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _at(path: Sequence[object], told: str) -> str:
    where = ".".join(str(part)[:_SHOWN_MAX] for part in path[:8])
    return f"{where}: {told}" if where else told
