import pytest

from luftpause.services.runtime.answer_check import Fit, Misfit, verdict_on, with_shape

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize("text", ['{"n": 1}', ' {"n": 1}\n', '```json\n{"n": 1}\n```', '```\n{"n": 1}\n```'])
def test_json_of_the_schema_fits_with_or_without_a_fence(text: str) -> None:
    assert verdict_on(text, SCHEMA) == Fit({"n": 1})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("one", "not JSON"),
        ('Here: {"n": 1}', "not JSON alone"),
        ("", "not JSON"),
        ('{"n": "1"}', "n: '1' is not of type 'integer'"),
        ("{}", "'n' is a required property"),
        ('{"n": 1e999}', "JSON"),
        ("[" * 5000, "JSON"),
    ],
)
def test_what_does_not_fit_is_told_in_words(text: str, told: str) -> None:
    found = verdict_on(text, SCHEMA)
    assert isinstance(found, Misfit)
    assert told in found.complaint


def test_values_that_nothing_can_carry_on_do_not_fit() -> None:
    assert isinstance(verdict_on('"\\ud800"', {"type": "string"}), Misfit)
    assert isinstance(verdict_on("[" * 150 + "]" * 150, {"type": "array"}), Misfit)


def test_the_model_is_told_the_shape_after_its_own_system_prompt() -> None:
    assert with_shape("be brief", SCHEMA).startswith("be brief\n\n")
    assert '"required":["n"]' in with_shape(None, SCHEMA)
