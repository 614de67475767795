import pytest

from luftpause.core.dialects.text_calls.shapes import calls_in


@pytest.mark.parametrize(
    "value",
    [
        {"name": "f", "arguments": {"a": 1}},
        {"tool": "f", "args": {"a": 1}},
        {"tool_name": "f", "input": {"a": 1}},
        {"id": "call_1", "type": "function", "function": {"name": "f", "parameters": {"a": 1}}},
    ],
)
def test_a_call_comes_in_many_shapes(value: object) -> None:
    for each in (value, [value], {"tool_calls": [value]}):
        assert [(call.name, call.arguments) for call in calls_in(each, "json", exact=True)] == [("f", '{"a": 1}')]


@pytest.mark.parametrize(
    "value",
    [
        {"name": "f"},
        {"name": "f", "arguments": {}, "parameters": {}},
        {"name": "f", "arguments": {}, "more": 1},
        {"name": "f", "arguments": [1]},
        {"function": {"name": "f", "arguments": {}}, "more": 1},
        {"tool_calls": [{"name": "f", "arguments": {}}], "more": 1},
    ],
)
def test_where_nothing_says_that_it_is_a_call_the_shape_must_be_exact(value: object) -> None:
    assert calls_in(value, "json", exact=True) == ()
    assert len(calls_in(value, "json")) == 1


@pytest.mark.parametrize("value", [5, "f", [], [5], {}, {"name": 5}, [{"name": "f"}, 5]])
def test_other_values_are_none(value: object) -> None:
    assert calls_in(value, "json") == ()
