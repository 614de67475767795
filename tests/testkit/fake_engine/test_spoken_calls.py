import json

import pytest

from luftpause.core.dialects.text_calls.recover import recover
from luftpause.testkit.fake_engine.conversations import CalledFunction, ToolCall
from luftpause.testkit.fake_engine.spoken_calls import FORMS, spoken


def asked(**arguments: object) -> ToolCall:
    return ToolCall(id="c", function=CalledFunction(name="look", arguments=json.dumps(arguments)))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_spoken_is_understood(form: str) -> None:
    said = spoken(form, [asked(at="the moon"), asked(at='a "quoted" place')])
    found = recover(said, {"look"}.__contains__)
    assert found is not None, said
    wanted = [{"at": "the moon"}, {"at": 'a "quoted" place'}]
    assert [json.loads(call.arguments) for call in found.calls] == wanted
    assert found.text == ("I will look:" if form == "fenced" else "")


def test_a_form_that_nobody_knows_is_bare_json() -> None:
    assert spoken("klingon", [asked(at="x")]) == '{"name": "look", "parameters": {"at": "x"}}'
