"""Filled arguments fit their schema."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.testkit.fake_engine.arguments import fill_arguments, fill_value

WORDS = ["where", "does", "the", "Danube", "rise"]


def wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


@pytest.mark.parametrize(
    ("schema", "filled"),
    [
        ({"type": "string"}, "where does the Danube rise"),
        ({"type": "string", "maxLength": 5}, "where"),
        ({"type": "string", "minLength": 30}, "where does the Danube risexxxx"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"enum": ["km", "miles"]}, "km"),
        ({"const": 4}, 4),
        ({"type": "integer", "minimum": 10}, 10),
        ({"type": "integer", "exclusiveMinimum": 4, "multipleOf": 5}, 5),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "minimum": 0.25, "maximum": 0.75}, 0.5),
        ({"type": "boolean"}, True),
        ({"type": ["null", "boolean"]}, True),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"allOf": [{"type": "integer"}, {"minimum": 7}]}, 7),
        ({"properties": {"only": {"type": "boolean"}}}, {"only": True}),
        ({}, "where does the Danube rise"),
    ],
)
def test_a_property_is_filled_as_its_schema_says(schema: dict[str, Any], filled: object) -> None:
    assert fill_arguments(wrapped(schema), WORDS, 0) == {"x": filled}


def test_required_properties_are_filled_and_others_left_out() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "required": ["b"]}
    assert fill_arguments(schema, WORDS, 0) == {"b": 1}


def test_without_required_properties_the_first_is_filled() -> None:
    assert fill_arguments({"properties": {"a": {"type": "integer"}, "b": {}}}, WORDS, 0) == {"a": 1}
    assert fill_arguments({}, WORDS, 0) == {}


def test_references_are_followed_and_endless_ones_end() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}
    schema = wrapped({"$ref": "#/$defs/node"}) | {"$defs": {"node": node}}
    assert fill_arguments(schema, WORDS, 0)["x"]


def test_calls_of_one_reply_differ() -> None:
    schema = wrapped({"type": "string"})
    assert fill_arguments(schema, WORDS, 1) == {"x": "does the Danube rise where"}
    assert fill_arguments(wrapped({"enum": ["a", "b"]}), WORDS, 1) == {"x": "b"}


scalars = st.one_of(
    st.builds(
        lambda least, more: {"type": "integer", "minimum": least, "maximum": least + more},
        st.integers(-50, 50),
        st.integers(0, 9),
    ),
    st.builds(
        lambda above, more: {"type": "number", "exclusiveMinimum": above, "exclusiveMaximum": above + more},
        st.integers(-50, 50),
        st.integers(1, 9),
    ),
    st.builds(
        lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
        st.integers(0, 40),
        st.integers(0, 9),
    ),
    st.builds(lambda members: {"enum": members}, st.lists(st.text(max_size=3), min_size=1, max_size=3)),
    st.just({"type": "boolean"}),
    st.just({"type": ["null", "string"]}),
)
schemas = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)),
        st.builds(
            lambda properties: {
                "type": "object",
                "properties": properties,
                "required": sorted(properties),
                "additionalProperties": False,
            },
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
        ),
        st.builds(lambda first: {"anyOf": [{"type": "null"}, first]}, inner),
    ),
    max_leaves=6,
)


@given(schema=schemas, variant=st.integers(0, 3), words=st.lists(st.text("xyz", min_size=1), max_size=5))
def test_arguments_fit_whatever_schema_a_tool_has(schema: dict[str, Any], variant: int, words: list[str]) -> None:
    jsonschema.validate(fill_arguments(wrapped(schema), words, variant), wrapped(schema))


def test_a_value_fits_any_schema() -> None:
    words = ["danube", "rise"]
    assert fill_value({"type": "array", "items": {"enum": [3, 4]}}, words) == [3]
    assert fill_value({"$ref": "#/$defs/o", "$defs": {"o": {"required": ["a"], "properties": {"a": {}}}}}, words) == {
        "a": "danube rise"
    }
    assert fill_value({}, words) == {}
