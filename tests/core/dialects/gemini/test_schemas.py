import pytest

from luftpause.core.dialects.gemini.schemas import DEPTH_MAX, json_schema
from luftpause.core.dialects.request import BadRequestError


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "TYPE_UNSPECIFIED", "title": "T"}, {"title": "T"}),
        ({"type": "INTEGER", "nullable": True}, {"type": ["integer", "null"]}),
        ({"type": "STRING", "nullable": False}, {"type": "string"}),
        (
            {"type": "STRING", "enum": ["a", "b"], "format": "enum", "nullable": True},
            {"type": ["string", "null"], "enum": ["a", "b", None], "format": "enum"},
        ),
        (
            {"type": "ARRAY", "items": {"type": "NUMBER"}, "minItems": "1", "max_items": "3"},
            {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3},
        ),
        (
            {
                "type": "OBJECT",
                "properties": {"type": {"type": "STRING"}, "min_items": {"type": "BOOLEAN", "example": True}},
                "required": ["type"],
                "propertyOrdering": ["type"],
            },
            {
                "type": "object",
                "properties": {"type": {"type": "string"}, "min_items": {"type": "boolean", "examples": [True]}},
                "required": ["type"],
            },
        ),
        (
            {"any_of": [{"type": "STRING"}, {"ref": "#/defs/x"}], "nullable": True},
            {"anyOf": [{"type": "string"}, {"$ref": "#/defs/x"}, {"type": "null"}]},
        ),
        (
            {"type": ["string", "null"], "additionalProperties": False},
            {"type": ["string", "null"], "additionalProperties": False},
        ),
        ({"type": "string", "x-odd": {"type": "STRING"}}, {"type": "string", "x-odd": {"type": "STRING"}}),
    ],
)
def test_a_schema_becomes_json_schema(schema: dict[str, object], expected: dict[str, object]) -> None:
    assert json_schema(schema) == expected
    assert json_schema(json_schema(schema)) == expected


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: dict[str, object] = {"type": "STRING"}
    for _ in range(DEPTH_MAX + 1):
        schema = {"type": "ARRAY", "items": schema}
    with pytest.raises(BadRequestError, match="too deeply"):
        json_schema(schema)
