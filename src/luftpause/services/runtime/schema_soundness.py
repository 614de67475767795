"""Whether a JSON schema that somebody wrote means what they think, and can be judged by.

A slip in it would let any answer through. The usual ones are told in plain words and with their place;
then the draft's own schema of schemas has its say; and a few values are tried, for a schema that refers to itself
without end shows only then.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, cast

from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from luftpause.services.runtime.schema_drafts import DRAFTS, compiled
from luftpause.services.runtime.schema_fit import (
    STEPS_MAX,
    TOO_MUCH,
    Judged,
    Survey,
    draft_of,
    judge_of,
    strictly,
    survey,
    told_of,
)
from luftpause.services.runtime.schema_words import KINDS, shown

SCHEMAS_MAX: Final = 2_000
"""Schemas within one that is checked."""

_BRANCHES: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_ONE: Final = (
    *("additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_NAMED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_BOUNDS: Final = (
    *("minimum", "maximum"),
    *(f"{side}{what}" for side in ("min", "max") for what in ("Length", "Items", "Properties")),
)
_PROBES: Final[tuple[object, ...]] = (None, True, 1, "a", [], {}, ["a"], {"a": 1})


class _Found(Protocol):
    @property
    def contents(self) -> object: ...


class _Resolver(Protocol):
    def lookup(self, ref: str) -> _Found: ...

    def in_subresource(self, subresource: Resource[Any]) -> "_Resolver": ...


def unsound_schema(schema: Mapping[str, object]) -> str:
    """Return the first slip in a schema in one short sentence, and where it is; empty for none.

    It may take a good part of a second, so it belongs in a thread.
    """
    draft, seen = draft_of(schema), survey(schema)
    if draft is None:
        return f"there is no draft {shown(schema['$schema'])}; drafts: {', '.join(DRAFTS)}"
    if seen is None:
        return _TOO_LARGE
    return _unjudged(seen) or _first_slip(schema, draft) or _against_metaschema(schema, draft) or _untried(schema)


_TOO_LARGE: Final = "it is too large to be checked"


def _unjudged(seen: Survey) -> str:
    if seen.nested_draft:
        return "only the whole schema can name its draft in $schema, not a part of it"
    if seen.mixed:
        return "unevaluatedProperties beside patternProperties cannot be checked; use additionalProperties"
    return ""


def _untried(schema: Mapping[str, object]) -> str:
    if judge_of(schema) is None:
        return "its $id is no address"
    endless = any(strictly(probe, schema, STEPS_MAX) == TOO_MUCH for probe in _PROBES)
    return "it refers to itself without end, or takes too many steps to be checked" if endless else ""


def _first_slip(schema: Mapping[str, object], draft: str) -> str:
    specification = specification_with(draft)
    root: Registry[Any] = Registry()
    base = specification.create_resource(dict(schema))
    level: list[tuple[str, object, _Resolver]] = [("", schema, root.resolver_with_root(base))]
    steps = 0
    while level:
        below: list[tuple[str, object, _Resolver]] = []
        for place, part, resolver in level:
            steps += 1
            if steps > SCHEMAS_MAX:
                return _TOO_LARGE
            if isinstance(part, bool):
                continue
            if not isinstance(part, Mapping):
                told = f"{shown(part)} is no schema"
            else:
                inside = resolver
                if part is not schema and isinstance(part.get("$id"), str):
                    inside = resolver.in_subresource(specification.create_resource(part))
                told = _slip(part, inside)
                below.extend((f"{place}.{name}" if place else name, inner, inside) for name, inner in _parts(part))
            if told:
                return f"{place}: {told}" if place else told
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


def _slip(schema: Mapping[str, object], resolver: _Resolver) -> str:
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in KINDS:
            return f"there is no type {shown(kind)}; types: {', '.join(KINDS)}"
    for keyword in _REFERENCES:
        if keyword in schema and not _leads_somewhere(schema[keyword], resolver):
            return f"the reference {shown(schema[keyword])} leads nowhere in this schema"
    for keyword, expected, is_right in _SHAPES:
        if keyword in schema and not is_right(schema[keyword]):
            return f"{keyword} must be {expected}, not {shown(schema[keyword])}"
    return _bad_pattern(schema)


def _leads_somewhere(reference: object, resolver: _Resolver) -> bool:
    try:
        return isinstance(reference, str) and isinstance(resolver.lookup(reference).contents, Mapping | bool)
    except (Unresolvable, ValueError, LookupError, TypeError, AttributeError):
        return False


def _bad_pattern(schema: Mapping[str, object]) -> str:
    named = schema.get("patternProperties")
    patterns = [*([schema["pattern"]] if "pattern" in schema else ()), *(named if isinstance(named, Mapping) else ())]
    for pattern in patterns:
        told = compiled(pattern) if isinstance(pattern, str) else "it is no text"
        if isinstance(told, str):
            return f"the pattern {shown(pattern)} cannot be checked in bounded time: {told}"
    return ""


def _against_metaschema(schema: Mapping[str, object], draft: str) -> str:
    meta = DRAFTS[draft].META_SCHEMA
    try:
        found = best_match(cast(Judged, validator_for(meta)(meta).iter_errors)(schema))
    except RecursionError:
        return _TOO_LARGE
    return "" if found is None else told_of(found)


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
