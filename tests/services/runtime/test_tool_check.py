import pytest

from luftpause.core.model.ids import RunId, ToolCallId
from luftpause.core.runs.actions import CheckCall
from luftpause.services.runtime.tool_check import SoundCall, UnsoundCall, misfit, verdict
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


def test_a_schema_that_makes_no_sense_or_points_elsewhere_judges_nothing() -> None:
    assert misfit({"at": 1}, {"type": "nonsense"}) == ""
    assert misfit({"at": 1}, {"$ref": "http://127.0.0.1:9/schema.json"}) == ""
