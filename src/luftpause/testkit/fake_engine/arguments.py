"""Arguments for a tool call that fit the tool's JSON schema, made of the words of the task.

Covers what tools use in practice: types, enums, constants, bounds, lengths, arrays, nested objects, references and
alternatives. A `pattern` is beyond it. Same schema, words and variant: same arguments.
"""

import math
from collections.abc import Mapping, Sequence

Schema = Mapping[str, object]

DEPTH_MAX = 8
ITEMS_MAX = 16
WORDS_MAX = 8
_BY_FORMAT = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "someone@example.org",
    "uri": "http://127.0.0.1/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def fill_arguments(schema: Schema, words: Sequence[str], variant: int) -> dict[str, object]:
    """Return arguments with every required property; where none is required, the first one.

    Args:
        schema: the tool's parameters, an object schema.
        words: of the task; strings are made of them.
        variant: 0 for the first call of a reply; others get other words and other enum members.
    """
    return _Filler(schema, words, variant).an_object(schema, 0)


def fill_value(schema: Schema, words: Sequence[str]) -> object:
    """Return a value that fits any schema; an object where it does not say."""
    return _Filler(schema, words, 0).a_value(schema or {"type": "object"}, 0)


class _Filler:
    """Walks one schema."""

    def __init__(self, root: Schema, words: Sequence[str], variant: int) -> None:
        self._root = root
        self._variant = variant
        turn = variant % len(words) if words else 0
        self._phrase = " ".join((*words[turn:], *words[:turn])[:WORDS_MAX]) or "something"

    def an_object(self, schema: Schema, depth: int) -> dict[str, object]:
        properties = as_schema(schema.get("properties"))
        required = [name for name in _as_list(schema.get("required")) if isinstance(name, str)]
        names = required or list(properties)[:1]
        return {name: self.a_value(as_schema(properties.get(name)), depth + 1) for name in names}

    def a_value(self, schema: Schema, depth: int) -> object:
        schema = self._resolved(schema)
        choices = [schema["const"]] if "const" in schema else schema.get("enum") or schema.get("examples")
        if isinstance(choices, list):
            return choices[self._variant % len(choices)]
        kind = self._type_of(schema)
        if kind == "object" and depth <= DEPTH_MAX:
            return self.an_object(schema, depth)
        if kind == "array" and depth <= DEPTH_MAX:
            count = min(max(1, _as_int(schema.get("minItems"), 1)), ITEMS_MAX)
            return [self.a_value(as_schema(schema.get("items")), depth + 1) for _ in range(count)]
        return self._scalar(kind, schema)

    def _scalar(self, kind: str, schema: Schema) -> object:
        match kind:
            case "integer" | "number":
                return self._number(schema, whole=kind == "integer")
            case "boolean":
                return True
            case "string":
                return self._text(schema)
            case _:
                return None

    def _resolved(self, schema: Schema) -> Schema:
        """Follow references, take the first alternative, merge `allOf`."""
        for _ in range(DEPTH_MAX):
            reference = schema.get("$ref")
            alternatives = _as_list(schema.get("anyOf")) or _as_list(schema.get("oneOf"))
            if isinstance(reference, str):
                schema = self._referred(reference)
            elif alternatives:
                schema = next((a for a in map(as_schema, alternatives) if a.get("type") != "null"), {})
            elif "allOf" in schema:
                merged = {key: value for key, value in schema.items() if key != "allOf"}
                for part in _as_list(schema["allOf"]):
                    merged |= as_schema(part)
                schema = merged
            else:
                break
        return schema

    def _referred(self, reference: str) -> Schema:
        found: object = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            found = as_schema(found).get(step.replace("~1", "/").replace("~0", "~"))
        return as_schema(found)

    def _type_of(self, schema: Schema) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((member for member in kind if member != "null"), "null")
        if isinstance(kind, str):
            return kind
        return "object" if "properties" in schema else "string"

    def _number(self, schema: Schema, *, whole: bool) -> int | float:
        low, high = _as_number(schema.get("minimum")), _as_number(schema.get("maximum"))
        above, below = _as_number(schema.get("exclusiveMinimum")), _as_number(schema.get("exclusiveMaximum"))
        step = _as_number(schema.get("multipleOf"))
        if step is None and not whole:
            return _between(low if above is None else above, high if below is None else below, self._variant + 1)
        step = step or 1
        count = self._variant + 1
        if low is not None:
            count = max(count, math.ceil(low / step))
        if above is not None:
            count = max(count, math.floor(above / step) + 1)
        if high is not None:
            count = min(count, math.floor(high / step))
        if below is not None:
            count = min(count, math.ceil(below / step) - 1)
        return int(count * step) if whole else count * step

    def _text(self, schema: Schema) -> str:
        text = _BY_FORMAT.get(str(schema.get("format")), self._phrase)
        text = text.ljust(_as_int(schema.get("minLength"), 0), "x")
        return text[: _as_int(schema.get("maxLength"), len(text))]


def as_schema(value: object) -> Schema:
    """Return a schema, or any other object; an empty one in place of what is none."""
    return value if isinstance(value, Mapping) else {}


def _as_list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _as_number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_int(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _between(low: float | None, high: float | None, otherwise: float) -> float:
    """Return a number well inside the bounds."""
    if low is not None and high is not None:
        return (low + high) / 2
    if low is not None:
        return max(low + 1, otherwise)
    return otherwise if high is None else min(high - 1, otherwise)
