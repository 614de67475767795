import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.services.runtime.schema_soundness import SCHEMAS_MAX, unsound_schema

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
OLD = {"$schema": DRAFT_4, "items": [{"type": "null"}], "minimum": 1, "exclusiveMinimum": True}
SOUND: dict[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"}, "any": True},
    "type": "object",
    "properties": {
        "name": {"$ref": "#/$defs/name"},
        "any": {"$ref": "#/$defs/any"},
        "list": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3},
        "either": {"anyOf": [{"type": ["string", "null"]}, {"const": None}]},
        "pair": {"prefixItems": [{"enum": [1, "a"]}, {}], "items": False},
        "own": {"$id": "https://example.org/own", "$ref": "#/$defs/x", "$defs": {"x": {"$anchor": "x"}}},
        "type": {"type": "integer", "minimum": 1, "format": "int32"},
    },
    "required": ["name"],
    "additionalProperties": {"type": "number"},
}


@pytest.mark.parametrize(
    "schema", [SOUND, {}, {"$schema": DRAFT_4, "items": [{"type": "null"}], "minimum": 1, "exclusiveMinimum": True}]
)
def test_a_schema_that_means_something_is_sound(schema: dict[str, object]) -> None:
    assert unsound_schema(schema) == ""


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "text"}, "there is no type 'text'; types: object, array, string, boolean, null, number, integer"),
        ({"type": ["string", 5]}, "there is no type 5; types: object, array"),
        ({"type": None}, "there is no type None"),
        ({"properties": {"a": {"type": "int"}}}, "properties.'a': there is no type 'int'"),
        ({"items": {"anyOf": [{}, {"type": "str"}]}}, "items.anyOf.1: there is no type 'str'"),
        ({"items": [{"type": "str"}]}, "items.0: there is no type 'str'"),
        ({"additionalProperties": {"type": "str"}}, "additionalProperties: there is no type"),
        ({"$defs": {"a": {"type": "str"}}}, "$defs.'a': there is no type"),
        ({"$ref": "#/$defs/missing"}, "the reference '#/$defs/missing' leads nowhere in this schema"),
        ({"$ref": "https://example.org/schema"}, "leads nowhere"),
        ({"$ref": 5}, "the reference 5 leads nowhere"),
        ({"properties": ["a"]}, "properties must be an object of schemas, not ['a']"),
        ({"properties": {"a": "string"}}, "properties.'a': 'string' is no schema"),
        ({"items": None}, "items: None is no schema"),
        ({"required": "a"}, "required must be a list of names, not 'a'"),
        ({"required": [1]}, "required must be a list of names"),
        ({"enum": []}, "enum must be a list of values"),
        ({"enum": "ab"}, "enum must be a list of values, not 'ab'"),
        ({"anyOf": {}}, "anyOf must be a list of schemas"),
        ({"oneOf": []}, "oneOf must be a list of schemas"),
        ({"minimum": "1"}, "minimum must be a number, not '1'"),
        ({"maxItems": True}, "maxItems must be a number, not True"),
        ({"type": []}, "type: [] should be non-empty"),
        ({"items": [{"type": "null"}]}, "items: [{'type': 'null'}] is not of type"),
        ({"minimum": 1, "exclusiveMinimum": True}, "exclusiveMinimum: True is not of type 'number'"),
        ({"properties": {"a": {"multipleOf": 0}}}, "properties.a.multipleOf: 0 is less than or equal to the minimum"),
        ({"not": {"type": "str"}}, "not: there is no type 'str'"),
        ({"if": {"then": "x"}}, "if.then: 'x' is no schema"),
        ({"patternProperties": {"a": {"type": "str"}}}, "patternProperties.'a': there is no type"),
        ({"pattern": "(?=a)b"}, "the pattern '(?=a)b' cannot be checked in bounded time: invalid perl operator: (?="),
        ({"properties": {"a": {"pattern": "["}}}, "properties.'a': the pattern '[' cannot be checked"),
        ({"patternProperties": {"(a)\\1": {}}}, "cannot be checked in bounded time: invalid escape sequence"),
        (
            {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
            "cannot be checked; use additionalProperties",
        ),
        ({"$ref": "#missing"}, "the reference '#missing' leads nowhere"),
        ({"$defs": {"a": {"$id": "own", "$ref": "#/$defs/x"}, "x": {}}}, "$defs.'a': the reference '#/$defs/x' leads"),
        (
            {"$schema": "https://example.org/own"},
            "there is no draft 'https://example.org/own'; drafts: https://json-schema",
        ),
        ({"items": {"$schema": DRAFT_4}}, "only the whole schema can name its draft"),
        ({"$ref": "#"}, "it refers to itself without end"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "it refers to itself without end"),
        ({"properties": {str(n): {} for n in range(SCHEMAS_MAX)}}, "it is too large to be checked"),
    ],
)
def test_a_slip_is_told_with_its_place(schema: dict[str, object], told: str) -> None:
    assert unsound_schema(schema).startswith(told) or told in unsound_schema(schema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "$ref", "items", "anyOf", "properties", "required", "enum", "minimum", "$id"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["type", "$ref", "items", "allOf", "properties", "$defs"]), JSON))
def test_whatever_is_called_a_schema_gets_a_verdict(schema: dict[str, object]) -> None:
    assert isinstance(unsound_schema(schema), str)
