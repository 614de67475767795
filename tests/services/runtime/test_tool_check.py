import json

import pytest

from luftpause.core.model.ids import RunId, ToolCallId
from luftpause.core.runs.actions import CheckCall
from luftpause.services.runtime.tool_check import SoundCall, UnsoundCall, arguments_for, verdict
from services.runtime.runtime_fakes import tool_spec


def call(tool: str, arguments: str) -> CheckCall:
    return CheckCall(run=RunId("r"), call=ToolCallId("c"), tool=tool, arguments=arguments)


def test_a_sound_call_carries_its_parsed_arguments() -> None:
    look = tool_spec("look")
    assert verdict(call("look", '{"at":"x"}'), [look]) == SoundCall(tool=look, arguments={"at": "x"})
    assert verdict(call("fake__look", '{"at":"x"}'), [look]) == SoundCall(tool=look, arguments={"at": "x"})


def test_no_arguments_at_all_are_an_empty_object() -> None:
    bare = tool_spec("bare", schema={"type": "object"})
    assert verdict(call("bare", " "), [bare]) == SoundCall(tool=bare, arguments={})


@pytest.mark.parametrize("arguments", ["[]", "5", '{"at":', '{"at": "x", "more": 1}', "{}"])
def test_an_unsound_call_is_told_the_expected_shape(arguments: str) -> None:
    found = verdict(call("look", arguments), [tool_spec("look")])
    assert isinstance(found, UnsoundCall)
    assert "look takes arguments of this JSON schema" in found.text
    assert '"required":["at"]' in found.text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"at":' + "[" * 200_000 + "]" * 200_000 + "}", "the arguments are no JSON object"),
        ('{"at":' + "[" * 200 + "]" * 200 + "}", "nested more than 100 deep"),
        (r'{"at":"\ud800"}', "the arguments are no JSON object"),
        ('{"at":"\ud800"}', "the arguments are no JSON object"),
    ],
)
def test_arguments_that_nobody_could_carry_on_are_told_to_the_model(arguments: str, told: str) -> None:
    found = verdict(call("look", arguments), [tool_spec("look", schema={"type": "object"})])
    assert isinstance(found, UnsoundCall)
    assert told in found.text


def test_an_unknown_tool_is_answered_with_some_names_not_with_all() -> None:
    tools = [tool_spec(f"tool{number}") for number in range(1000)]
    found = verdict(call("x" * 10_000, "{}"), tools)
    assert isinstance(found, UnsoundCall)
    assert "tool19 and 980 more" in found.text
    assert len(found.text) < 500


SHAPE = {
    "type": "object",
    "properties": {"at": {"type": "string"}, "times": {"type": "integer"}, "options": {"type": "object"}},
}


def told(arguments: str, **more: bool) -> str:
    asked = CheckCall(run=RunId("r"), call=ToolCallId("c"), tool="look", arguments=arguments, **more)
    found = verdict(asked, [tool_spec("look", schema=SHAPE), tool_spec("lock_up"), tool_spec("write")])
    assert isinstance(found, UnsoundCall)
    return found.text


def test_slips_are_mended_and_the_same_text_gives_the_same_arguments_again() -> None:
    look = tool_spec("look", schema=SHAPE)
    text = '{"at": 5, "times": "3", "options": null}'
    assert verdict(call("look", text), [look]) == SoundCall(tool=look, arguments={"at": "5", "times": 3})
    assert arguments_for(look, text) == {"at": "5", "times": 3}


@pytest.mark.parametrize("text", [r'"{\"at\": \"x\"}"', json.dumps(json.dumps('{"at": "x"}'))])
def test_arguments_may_be_encoded_once_more(text: str) -> None:
    assert arguments_for(tool_spec("look"), text) == {"at": "x"}


@pytest.mark.parametrize("text", ["null", '""', " "])
def test_nothing_is_no_arguments(text: str) -> None:
    assert arguments_for(tool_spec("look"), text) == {}


@pytest.mark.parametrize("text", ['"x"', "5", json.dumps(json.dumps(json.dumps('{"at": "x"}')))])
def test_what_is_no_object_is_none(text: str) -> None:
    assert arguments_for(tool_spec("look"), text) is None


@pytest.mark.parametrize(
    "arguments",
    [
        '{"type": "object", "properties": {"at": {"type": "string"}}}',
        '{"at": {"type": "string", "description": "where"}}',
        '{"properties": {"at": "x"}}',
    ],
)
def test_a_model_that_passes_the_schema_is_told_so(arguments: str) -> None:
    assert told(arguments).startswith(
        "Error: this is the schema of the arguments, not arguments; "
        'give values, as {"at": <string>, "times": <integer>, "options": <object>}'
    )


def test_an_object_that_only_looks_like_a_schema_is_one() -> None:
    look = tool_spec("look", schema=SHAPE)
    assert isinstance(verdict(call("look", '{"options": {"type": "wide"}}'), [look]), SoundCall)


def test_an_unknown_tool_is_answered_with_the_nearest_ones() -> None:
    found = verdict(call("lookup", "{}"), [tool_spec("look"), tool_spec("lock_up"), tool_spec("write")])
    assert isinstance(found, UnsoundCall)
    assert "Did you mean look or lock_up? Tools: look, lock_up, write." in found.text


def test_a_call_that_was_cut_is_not_made() -> None:
    assert told("", cut=True).startswith("Error: not called, your reply reached its greatest length")
    assert told('{"at": "x"}', cut=True).startswith("Error: not called")
