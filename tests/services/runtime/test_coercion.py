from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.services.runtime.coercion import fitted
from luftpause.services.runtime.schema_fit import misfit

POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "whole": {"type": "integer"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "point": {"$ref": "#/$defs/point"},
        "points": {"type": "array", "items": {"$ref": "#/$defs/point"}},
        "names": {"type": "array", "items": {"type": "string"}},
        "anything": {},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "both": {"allOf": [{"type": "integer"}, {"minimum": 0}]},
        "level": {"enum": [1, 2, 3]},
        "two": {"type": ["integer", "boolean"]},
        "one": {"const": True},
    },
    "required": ["text"],
    "$defs": {"point": POINT},
}


@pytest.mark.parametrize(
    ("name", "given_", "becomes"),
    [
        ("whole", "3", 3),
        ("whole", " -3 ", -3),
        ("whole", "3.0", 3),
        ("whole", 3.0, 3),
        ("whole", "3.5", "3.5"),
        ("whole", "three", "three"),
        ("whole", True, True),
        ("number", "2.5", 2.5),
        ("number", "1e3", 1000.0),
        ("number", "3", 3),
        ("number", "nan", "nan"),
        ("number", 2.0, 2.0),
        ("flag", "true", True),
        ("flag", "False", False),
        ("flag", "yes", "yes"),
        ("flag", 1, 1),
        ("text", 3, "3"),
        ("text", 1.5, "1.5"),
        ("text", True, "true"),
        ("text", None, None),
        ("text", "3", "3"),
        ("text", {"a": 1}, {"a": 1}),
        ("point", '{"x": "3"}', {"x": 3}),
        ("point", {"x": "3"}, {"x": 3}),
        ("point", "{x}", "{x}"),
        ("points", '[{"x": "1"}, {"x": 2}]', [{"x": 1}, {"x": 2}]),
        ("points", {"x": "1"}, [{"x": 1}]),
        ("names", "a", ["a"]),
        ("names", 3, ["3"]),
        ("names", "a, b", "a, b"),
        ("names", '["a", "b"]', ["a", "b"]),
        ("anything", "3", "3"),
        ("maybe", "3", 3),
        ("maybe", None, None),
        ("maybe", "null", None),
        ("either", "true", True),
        ("either", "what", "what"),
        ("both", "3", 3),
        ("level", "2", 2),
        ("two", "true", True),
        ("one", "true", True),
        ("unknown", "3", "3"),
    ],
)
def test_a_value_becomes_what_it_is_meant_as(name: str, given_: object, becomes: object) -> None:
    made = fitted({"text": "t", name: given_}, SCHEMA)
    assert made == {"text": "t", name: becomes}
    assert type(made[name]) is type(becomes)


@pytest.mark.parametrize("nothing", [None, "", "null", "None"])
@pytest.mark.parametrize("name", ["whole", "flag", "point"])
def test_nothing_for_what_may_be_left_out_is_left_out(name: str, nothing: object) -> None:
    assert fitted({"text": "t", name: nothing}, SCHEMA) == {"text": "t"}


@pytest.mark.parametrize("nothing", ["", "null"])
def test_where_a_string_fits_it_is_one(nothing: str) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    assert fitted({"text": nothing}, schema) == {"text": nothing}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.floats(-9, 9)
    | st.sampled_from(["3", "true", "", "a,b", "[]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xab"), inner, max_size=3),
    max_leaves=5,
)
PROPERTIES = SCHEMA["properties"]
assert isinstance(PROPERTIES, dict)


@given(st.dictionaries(st.sampled_from([*PROPERTIES, "unknown"]), VALUES))
def test_what_fits_is_never_changed_and_what_is_made_to_fit_stays(arguments: dict[str, object]) -> None:
    made = fitted(arguments, SCHEMA)
    if not misfit(arguments, SCHEMA):
        assert made == arguments
    assert fitted(made, SCHEMA) == made


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {"type": "array", "items": {"$ref": "#/properties/a"}}}},
        {"properties": 5, "required": 5, "type": 5, "anyOf": 5, "allOf": [5], "enum": 5},
        {"anyOf": [None, {"type": "string"}]},
        {"properties": {"a": {"$id": "http://elsewhere/", "type": "integer"}}},
    ],
)
def test_an_odd_schema_changes_nothing_and_ends(schema: dict[str, object]) -> None:
    deep: object = "3"
    for _ in range(200):
        deep = {"a": deep}
    for value in ("3", deep, [1]):
        assert fitted({"a": value}, schema)["a"] in (value, [[value]], [value]) or isinstance(value, str)


def test_a_long_list_is_gone_through_as_far_as_it_pays() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    made = fitted({"a": ["3"] * 20_000}, schema)["a"]
    assert isinstance(made, list)
    assert (made[0], made[-1], len(made)) == (3, "3", 20_000)
