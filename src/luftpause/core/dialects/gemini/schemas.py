"""Schemas in Gemini's own form (types in upper case, `nullable`, counts as text) as JSON Schema."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

from luftpause.core.dialects.request import BadRequestError

Schema: TypeAlias = Mapping[str, object]

DEPTH_MAX: Final = 64

_UNTYPED: Final = "TYPE_UNSPECIFIED"
_LEFT_OUT: Final = ("propertyOrdering", "property_ordering", "nullable", "example", "type")
_NAMES: Final = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "ref": "$ref",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
}
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
"""Written as text, since JSON's numbers would not hold every one of them."""


def json_schema(schema: Schema, depth: int = 0) -> dict[str, object]:
    """Return the same as JSON Schema. What is JSON Schema already stays as it is.

    Raises:
        BadRequestError: it is nested too deeply.
    """
    if depth > DEPTH_MAX:
        raise BadRequestError("a schema is nested too deeply")
    said: dict[str, object] = {}
    kind = schema.get("type")
    if kind is not None and kind != _UNTYPED:
        said["type"] = kind.lower() if isinstance(kind, str) else kind
    for name, value in schema.items():
        if name not in _LEFT_OUT:
            known = _NAMES.get(name, name)
            said[known] = _member(known, value, depth + 1)
    if schema.get("example") is not None:
        said["examples"] = [schema["example"]]
    return _nullable(said) if schema.get("nullable") is True else said


def _member(name: str, value: object, depth: int) -> object:
    if name in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    inner = _INNER.get(name)
    return value if inner is None else inner(value, depth)


def _one(value: object, depth: int) -> object:
    return json_schema(cast("Schema", value), depth) if isinstance(value, dict) else value


def _many(value: object, depth: int) -> object:
    return [_one(each, depth) for each in cast("list[object]", value)] if isinstance(value, list) else value


def _named(value: object, depth: int) -> object:
    if not isinstance(value, dict):
        return value
    return {name: _one(each, depth) for name, each in cast("dict[str, object]", value).items()}


_INNER: Final[Mapping[str, Callable[[object, int], object]]] = {
    "items": _one,
    "additionalProperties": _one,
    "anyOf": _many,
    "prefixItems": _many,
    "properties": _named,
    "$defs": _named,
}


def _nullable(said: dict[str, object]) -> dict[str, object]:
    """Let null be another value."""
    if isinstance(said.get("type"), str):
        said["type"] = [said["type"], "null"]
    if isinstance(said.get("anyOf"), list):
        said["anyOf"] = [*cast("list[object]", said["anyOf"]), {"type": "null"}]
    if isinstance(said.get("enum"), list):
        said["enum"] = [*cast("list[object]", said["enum"]), None]
    return said
