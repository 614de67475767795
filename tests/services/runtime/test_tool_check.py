import pytest

from luftpause.core.model.ids import RunId, ToolCallId
from luftpause.core.runs.actions import CheckCall
from luftpause.services.runtime.tool_check import SoundCall, UnsoundCall, verdict
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
        ('{"at":' + "[" * 3000 + "]" * 3000 + "}", "the arguments are no JSON object"),
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
