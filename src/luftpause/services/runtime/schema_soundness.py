"""Whether a JSON schema that somebody wrote means what they think: a slip in it would let any answer through.

Only what `schema_fit` looks at is looked at here, within a fixed number of steps.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from luftpause.services.runtime.schema_fit import KINDS, STEPS_MAX, shown, target_of

_BRANCHES: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_ONE: Final = ("additionalProperties", "items")
_NAMED: Final = ("properties", "$defs", "definitions")
_BOUNDS: Final = (
    *("minimum", "maximum"),
    *(f"{side}{what}" for side in ("min", "max") for what in ("Length", "Items", "Properties")),
)


def unsound_schema(schema: Mapping[str, object]) -> str:
    """Return the first slip in a schema in one short sentence, and where it is; empty for none."""
    level: list[tuple[str, object]] = [("", schema)]
    steps = 0
    while level:
        below: list[tuple[str, object]] = []
        for place, part in level:
            steps += 1
            if steps > STEPS_MAX:
                return "it is too large to be checked"
            # A schema with an id of its own is a document of its own, which `schema_fit` does not look into.
            if isinstance(part, bool) or (part is not schema and isinstance(part, Mapping) and "$id" in part):
                continue
            told = _slip(part, schema) if isinstance(part, Mapping) else f"{shown(part)} is no schema"
            if told:
                return f"{place}: {told}" if place else told
            if isinstance(part, Mapping):
                below.extend((f"{place}.{name}" if place else name, inner) for name, inner in _parts(part))
        level = below
    return ""


def _parts(schema: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the schemas within one whose keywords are sound."""
    for keyword in _ONE:
        inner = schema.get(keyword, True)
        if not isinstance(inner, list):  # older drafts: `items` as a list is `prefixItems`
            yield keyword, inner
    for keyword in (*_BRANCHES, "items"):
        listed = schema.get(keyword)
        if isinstance(listed, list):
            yield from ((f"{keyword}.{place}", inner) for place, inner in enumerate(listed))
    for keyword in _NAMED:
        named = schema.get(keyword)
        if isinstance(named, Mapping):
            yield from ((f"{keyword}.{shown(name)}", inner) for name, inner in named.items())


def _slip(schema: Mapping[str, object], root: Mapping[str, object]) -> str:
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in KINDS:
            return f"there is no type {shown(kind)}; types: {', '.join(KINDS)}"
    if "$ref" in schema and target_of(schema["$ref"], root, otherwise=None) is None:
        return f"the reference {shown(schema['$ref'])} leads nowhere in this schema"
    for keyword, expected, is_right in _SHAPES:
        if keyword in schema and not is_right(schema[keyword]):
            return f"{keyword} must be {expected}, not {shown(schema[keyword])}"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_full_list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_SHAPES: Final[tuple[tuple[str, str, Callable[[object], bool]], ...]] = (
    ("enum", "a list of values", _is_full_list),
    ("required", "a list of names", _is_names),
    *((keyword, "an object of schemas", lambda value: isinstance(value, Mapping)) for keyword in _NAMED),
    *((keyword, "a list of schemas", _is_full_list) for keyword in _BRANCHES),
    *((keyword, "a number", _is_number) for keyword in _BOUNDS),
)
