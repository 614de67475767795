"""Arguments that nearly fit their schema, made to fit: slips with the kind of a value that leave no doubt.

| the schema wants | given | becomes |
| --- | --- | --- |
| integer, number | `"3"`, `"2.5"` | `3`, `2.5` |
| integer | `3.0` | `3` |
| boolean | `"true"`, `"False"` | `true`, `false` |
| string | `3`, `true` | `"3"`, `"true"` |
| object, array | its JSON as a string | the object, the array |
| array | a single value that fits its items; of strings, one without comma and line break | the array of it |
| anything that may be left out | `null`, and `""`, `"null"`, `"None"` where no string fits | left out |

What fits is never changed. Like the judgement itself this takes a fixed number of steps; what is beyond them stays as
it is.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from luftpause.services.runtime.schema_fit import misfit
from luftpause.services.runtime.schema_words import is_of, kinds_of, target_of

STEPS_MAX: Final = 5_000
_JUDGEMENTS_MAX: Final = 100
_JUDGEMENT_STEPS_MAX: Final = 500
_DEPTH_MAX: Final = 50
_WHOLE: Final = re.compile(r"[+-]?\d{1,18}(?:\.0{1,18})?")
_NUMBER: Final = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?")
_BOOLEANS: Final = {"true": True, "false": False}
_NOTHING: Final = ("", "null", "None")
_NO: Final = object()


def fitted(arguments: Mapping[str, object], schema: Mapping[str, object]) -> dict[str, object]:
    """Return arguments as their schema wants them, as far as there is no doubt."""
    made = _Fitter(schema).at(dict(arguments), schema, 0)
    return made if isinstance(made, dict) else dict(arguments)


class _Fitter:
    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._steps = 0
        self._judgements = 0

    def at(self, value: object, schema: object, depth: int) -> object:
        """Return what a value becomes at a place of the schema."""
        self._steps += 1
        if not isinstance(schema, Mapping) or self._steps > STEPS_MAX or depth > _DEPTH_MAX:
            return value
        # As in the judgement: a schema with an id of its own is a document of its own.
        if "$id" in schema and schema is not self._root:
            return value
        if "$ref" in schema:
            return self.at(value, target_of(schema["$ref"], self._root), depth + 1)
        value = self._of_kind(value, schema, depth)
        if isinstance(value, dict):
            value = self._members(value, schema, depth)
        elif isinstance(value, list):
            items = schema.get("items")
            value = [self.at(item, items, depth + 1) for item in value] if isinstance(items, Mapping) else value
        return self._by_branches(value, schema, depth)

    def _of_kind(self, value: object, schema: Mapping[str, object], depth: int) -> object:
        kinds = kinds_of(schema)
        if any(is_of(value, kind) for kind in kinds):
            whole = isinstance(value, float) and "integer" in kinds and "number" not in kinds
            return int(value) if whole and isinstance(value, float) else value
        for kind in kinds:
            made = self._listed(value, schema, depth) if kind == "array" else _as(kind, value)
            if made is not _NO:
                return made
        return value

    def _listed(self, value: object, schema: Mapping[str, object], depth: int) -> object:
        decoded = _decoded(value) if isinstance(value, str) else value
        if isinstance(decoded, list):
            return decoded
        items = schema.get("items")
        unsure = value is None or (isinstance(value, str) and any(mark in value for mark in ",\n"))
        if unsure or not isinstance(items, Mapping):
            return _NO
        made = self.at(value, items, depth + 1)
        return [made] if self._fits(made, items) else _NO

    def _members(self, value: dict[str, object], schema: Mapping[str, object], depth: int) -> dict[str, object]:
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, Mapping):
            return value
        needed = required if isinstance(required, list) else ()
        made: dict[str, object] = {}
        for name, member in value.items():
            part = properties.get(name)
            became = self.at(member, part, depth + 1)
            if part is not None and name not in needed and self._means_nothing(became, part):
                continue
            made[name] = became
        return made

    def _means_nothing(self, value: object, part: object) -> bool:
        return (value is None or value in _NOTHING) and not self._fits(value, part)

    def _by_branches(self, value: object, schema: Mapping[str, object], depth: int) -> object:
        every = schema.get("allOf")
        for branch in every if isinstance(every, list) else ():
            value = self.at(value, branch, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            branches = schema.get(keyword)
            if not isinstance(branches, list) or any(self._fits(value, branch) for branch in branches):
                continue
            made = (self.at(value, branch, depth + 1) for branch in branches)
            fitting = (each for each, branch in zip(made, branches, strict=True) if self._fits(each, branch))
            value = next(fitting, value)
        return value

    def _fits(self, value: object, part: object) -> bool:
        self._judgements += 1
        return part is None or self._judgements > _JUDGEMENTS_MAX or not self._misfit(value, part)

    def _misfit(self, value: object, part: object) -> str:
        return misfit(value, self._root, part=part, steps=_JUDGEMENT_STEPS_MAX)


def _as(kind: str, value: object) -> object:
    """Return what a value of the wrong kind is as one of the right kind, `_NO` where that is not plain."""
    if kind == "string" and isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    if not isinstance(value, str):
        return _NO
    text = value.strip()
    made: object = _NO
    match kind:
        case "integer" if _WHOLE.fullmatch(text):
            made = int(text.partition(".")[0])
        case "number" if _NUMBER.fullmatch(text):
            made = float(text) if set(text) & set(".eE") else int(text)
        case "boolean":
            made = _BOOLEANS.get(text.lower(), _NO)
        case "null" if text in _NOTHING[1:]:
            made = None
        case "object" if isinstance(decoded := _decoded(text), dict):
            made = decoded
        case _:
            pass
    return made


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text) if text.lstrip()[:1] in ("{", "[") else _NO
    except (ValueError, RecursionError):
        return _NO
