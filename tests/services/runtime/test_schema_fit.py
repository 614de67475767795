import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luftpause.services.runtime.schema_drafts import LATEST
from luftpause.services.runtime.schema_fit import NODES_MAX, TOO_MUCH, judge_of, misfit, strictly
from luftpause.services.runtime.schema_words import shown

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
EVIL: dict[str, object] = {"patternProperties": {"^(a+)+$": {}}}
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
        ({"at": ""}, "at: '' should be non-empty (minLength: 1)"),
        ({"at": "xxxxxx"}, "at: 'xxxxxx' is too long (maxLength: 5)"),
        ({"at": "x", "n": -1}, "n: -1 is less than the minimum of 0"),
        ({"at": "x", "n": 9}, "n: 9 is greater than or equal to the maximum of 9"),
        ({"at": "x", "n": True}, "n: True is not of type 'integer'"),
        ({"at": "x", "n": 1.5}, "n: 1.5 is not of type 'integer'"),
        ({"at": "x", "more": 1}, "Additional properties are not allowed ('more' was unexpected)"),
        ({"at": "x", "deep": {"y": 1}}, "deep.y: 1 is not of type 'boolean'"),
        ({"at": "x", "list": []}, "list: [] should be non-empty (minItems: 1)"),
        ({"at": "x", "list": ["a", "c"]}, "list.1: 'c' is not one of ['a', 'b']"),
        (
            {"at": "x", "either": 1},
            "either: 1 is not valid under any of the given schemas (1 is not of type 'string', and so on)",
        ),
        ({"at": "x", "pair": [2]}, "pair.0: 1 was expected"),
        ({"at": "x", "pair": [1, 2]}, "pair: Expected at most 1 item but found 1 extra: 2"),
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
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#/nowhere"},
        {"$id": 5, "type": "string"},
        {"$schema": "https://example.org/own-draft", "type": "string"},
        {"$ref": "#", "properties": {"at": {"$schema": LATEST, "type": "string"}}},
        {"properties": {"at": {"not": {"$ref": "#/nowhere"}}}},
        {"properties": {"at": {"oneOf": [{}, {"type": "nonsense"}]}}},
        {"if": {"type": "nonsense"}, "then": False},
        {"patternProperties": {"(?=a)": False}},
        {"not": {"patternProperties": {"(?=a)": False}}},
        {"contains": {"$ref": "#/nowhere"}, "maxContains": 0},
        {"type": "string", "a": [{}] * NODES_MAX},
    ],
)
def test_what_makes_no_sense_judges_nothing(schema: dict[str, object]) -> None:
    assert misfit({"at": 1}, schema) == ""


@pytest.mark.parametrize(
    ("schema", "good", "bad", "told"),
    [
        ({"pattern": "^[a-z]{2}\\d$"}, "ab1", "abc", "'abc' does not match '^[a-z]{2}"),
        ({"pattern": "\\u0061\\u{0062}"}, "xaby", "ba", "does not match"),
        ({"pattern": "^a$"}, "a", "a\n", "does not match"),
        ({"patternProperties": {"^n": {"type": "integer"}}, "additionalProperties": False}, {"n": 1}, {"m": 1}, "'m'"),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"m": "x"}, {"n1": "x"}, "n1: 'x' is not of type"),
        (
            {"patternProperties": {"^n": {}}, "additionalProperties": {"type": "null"}},
            {"n": 1},
            {"m": 1},
            "m: 1 is not",
        ),
        ({"not": {"required": ["a"]}}, {}, {"a": 1}, "should not be valid under"),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1, "b": 1}, {"a": 1}, "'b' is a required"),
        ({"if": {"required": ["a"]}, "else": {"required": ["b"]}}, {"a": 1}, {}, "'b' is a required property"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 1, 3, "3 is valid under each of"),
        ({"contains": {"const": 1}}, [0, 1], [0], "does not contain items matching"),
        (
            {"uniqueItems": True},
            [1, "1", True, [1], {"a": 1}],
            [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}],
            "more than once",
        ),
        ({"multipleOf": 3}, 9, 10, "10 is not a multiple of 3"),
        ({"propertyNames": {"maxLength": 1}}, {"a": 1}, {"ab": 1}, "'ab' is too long (maxLength: 1)"),
        ({"dependentRequired": {"a": ["b"]}}, {"b": 1}, {"a": 1}, "'b' is a dependency of 'a'"),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, {"b": 1}, "Unevaluated properties"),
        ({"properties": {"at": {"$id": "elsewhere", "type": "string"}}}, {"at": ""}, {"at": 1}, "at: 1 is not of type"),
        ({"$anchor": "a", "items": {"$ref": "#a"}, "type": ["array", "null"]}, [None, [None]], [[1]], "0.0: 1 is not"),
        (
            {"$schema": DRAFT_7, "items": [{"const": 1}]},
            [1, 5],
            [2],
            "0: 1 was expected",
        ),
        ({"$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True}, 2, 1, "1 is less than or equal to the minimum"),
        ({"$schema": DRAFT_4, "$ref": "#/definitions/a", "type": "null", "definitions": {"a": {}}}, 1, None, ""),
        ({"format": "date-time"}, "2026-11-30T09:00:00Z", "yesterday", "'yesterday' is not a 'date-time'"),
        ({"format": "int32"}, "x", None, ""),
        ({"allOf": [EVIL], "unevaluatedProperties": False}, {}, {"a" * 50 + "!": 1}, ""),
        ({"not": {"allOf": [EVIL], "unevaluatedProperties": False}}, {}, {"a" * 50 + "!": 1}, ""),
    ],
)
def test_every_keyword_of_the_draft_counts(schema: dict[str, object], good: object, bad: object, told: str) -> None:
    assert misfit(good, schema) == ""
    assert told in misfit(bad, schema)
    assert bool(told) == bool(misfit(bad, schema))


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(a*)*b", "a*a*a*a*a*a*c"])
def test_a_pattern_takes_time_that_grows_with_the_text_alone(pattern: str) -> None:
    text = "a" * 100_000 + "!"
    assert misfit({"x": text}, {"properties": {"x": {"pattern": pattern}}}) != ""
    assert misfit({text: 1}, {"patternProperties": {pattern: {}}, "additionalProperties": False}) != ""


@pytest.mark.parametrize("schema", ENDLESS.values(), ids=ENDLESS.keys())
def test_whoever_asks_strictly_is_told_that_there_is_no_end(schema: dict[str, object]) -> None:
    endless = "dynamic" if schema == ENDLESS["dynamic"] else "static"
    assert strictly({"x": 1}, schema, 50_000) == TOO_MUCH, endless
    assert strictly([1] * 60_000, {"items": {"type": "integer"}}, 50_000) == TOO_MUCH
    assert strictly([1, "a"], {"items": {"type": "integer"}}) == "1: 'a' is not of type 'integer'"


def test_a_judge_is_kept_for_the_very_schema_and_not_for_another_in_its_place() -> None:
    schema: dict[str, object] = {"type": "string"}
    assert judge_of(schema) is judge_of(schema)
    assert judge_of(dict(schema)) is not judge_of(schema)


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
def test_the_judgement_is_the_librarys(value: object, schema: dict[str, object]) -> None:
    assert bool(misfit(value, schema)) == (not jsonschema.Draft202012Validator(schema).is_valid(value))
