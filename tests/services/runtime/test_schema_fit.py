import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luftpause.services.runtime.schema_fit import misfit, shown

SCHEMA = {
    "type": "object",
    "properties": {
        "at": {"type": "string", "minLength": 1, "maxLength": 5},
        "n": {"type": "integer", "minimum": 0, "exclusiveMaximum": 9},
        "deep": {"$ref": "#/$defs/deep"},
        "list": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "pair": {"prefixItems": [{"const": 1}], "items": False},
    },
    "required": ["at"],
    "additionalProperties": False,
    "$defs": {"deep": {"type": "object", "additionalProperties": {"type": "boolean"}}},
}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"at": "x", "n": 2.0, "deep": {"y": True}, "list": ["a"], "either": None, "pair": [1]}, ""),
        (5, "5 is not of type 'object'"),
        ({}, "'at' is a required property"),
        ({"at": 5}, "at: 5 is not of type 'string'"),
        ({"at": ""}, "at: '' is too short, the least is 1"),
        ({"at": "xxxxxx"}, "at: 'xxxxxx' is too long, the most is 5"),
        ({"at": "x", "n": -1}, "n: -1 is less than the minimum of 0"),
        ({"at": "x", "n": 9}, "n: 9 is not less than 9"),
        ({"at": "x", "n": True}, "n: True is not of type 'integer'"),
        ({"at": "x", "n": 1.5}, "n: 1.5 is not of type 'integer'"),
        ({"at": "x", "more": 1}, "Additional properties are not allowed ('more' was unexpected)"),
        ({"at": "x", "deep": {"y": 1}}, "deep.y: 1 is not of type 'boolean'"),
        ({"at": "x", "list": []}, "list: [] is too short, the least is 1"),
        ({"at": "x", "list": ["a", "c"]}, "list.1: 'c' is not one of ['a', 'b']"),
        ({"at": "x", "either": 1}, "either: 1 is not of type 'string', nor does any other form fit"),
        ({"at": "x", "pair": [2]}, "pair.0: 1 was expected, not 2"),
        ({"at": "x", "pair": [1, 2]}, "pair.1: 2 is not allowed"),
    ],
)
def test_a_misfit_is_told_in_one_sentence_with_its_place(value: object, told: str) -> None:
    assert misfit(value, SCHEMA) == told


ENDLESS = {
    "of the whole": {"$ref": "#"},
    "of a property": {"properties": {"x": {"$ref": "#/properties/x"}}},
    "dynamic": {"$dynamicRef": "#"},
    "branching": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "doubling": {
        "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)},
        "$ref": "#/$defs/d0",
    },
}


@pytest.mark.parametrize("schema", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_schema_without_end_judges_nothing(schema: dict[str, object]) -> None:
    assert misfit({"x": 1}, schema) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": 5, "enum": 5, "required": 5, "properties": 5, "items": 5, "anyOf": 5, "allOf": 5, "minimum": "x"},
        {"$schema": {"no": "string"}, "properties": {"at": {"$schema": 5}}},
        {"$ref": "http://127.0.0.1:9/schema.json", "type": "string"},
        {"$ref": "#/nowhere"},
        {"properties": {"at": {"$id": "elsewhere", "type": "string"}}},
        {"patternProperties": {"^a": {}}, "additionalProperties": False},
        {"not": {"pattern": "x"}},
        {"if": {}, "then": False},
    ],
)
def test_what_makes_no_sense_or_is_not_looked_at_judges_nothing(schema: dict[str, object]) -> None:
    assert misfit({"at": 1}, schema) == ""


def test_a_pattern_is_never_tried() -> None:
    assert misfit({"x": "a" * 40 + "!"}, {"properties": {"x": {"pattern": "^(a+)+$"}}}) == ""


def test_a_complaint_never_repeats_much_of_what_it_is_about() -> None:
    long = "a" * 100_000
    for value, schema in (
        ([long], {"type": "string"}),
        ({long: 1}, {"additionalProperties": False}),
        ({long: {long: 1}}, {"additionalProperties": {"additionalProperties": {"type": "string"}}}),
        (long, {"enum": [long + "b"] * 100}),
        (long, {"const": long + "b"}),
        (long, {"maxLength": 1}),
    ):
        assert 0 < len(misfit(value, schema)) < 300
    assert shown(long) == "'" + "a" * 59 + "…"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
plain_schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"]),
        "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        "minimum": st.integers(-1, 1),
        "exclusiveMaximum": st.integers(-1, 1),
        "maxLength": st.integers(0, 2),
        "minItems": st.integers(0, 2),
        "pattern": st.just("a"),
    },
)
schemas = st.recursive(
    plain_schemas,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "additionalProperties": inner | st.booleans(),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    ),
    max_leaves=6,
)


@given(values, schemas)
@settings(max_examples=300, deadline=None)
def test_a_complaint_is_always_right(value: object, schema: dict[str, object]) -> None:
    if misfit(value, schema):
        assert not jsonschema.Draft202012Validator(schema).is_valid(value)
