import pytest

from luftpause.core.dialects.text_calls.readings import as_json, cut_call, mended, value_at


def test_a_value_ends_where_it_ends() -> None:
    assert value_at('  {"a": 1} and', 0) == ({"a": 1}, 10)
    assert value_at("x", 0) is None
    assert value_at("[" * 100_000, 0) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": {"b": 1}', {"a": {"b": 1}}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": "}", ', {"a": "}"}),
        ('{"a": 1}', None),
        ('{"a": 1]', None),
        ('{"a": "b', None),
        ("{" * 9, None),
        ('{"a": ', None),
        ('{"a": "' + "x" * 20_000 + '"', None),
    ],
)
def test_only_brackets_are_mended(text: str, value: object) -> None:
    assert mended(text) == value


def test_half_a_character_can_be_written_down() -> None:
    assert as_json({"a": "é"}) == '{"a": "é"}'
    as_json({"a": "\ud800"}).encode()


def test_a_cut_call_has_a_name() -> None:
    call = cut_call('<x>{"name": "f", "argum', 3, "json")
    assert call is not None
    assert (call.name, call.arguments, call.cut) == ("f", '{"name": "f", "argum', True)
    assert cut_call('{"name": "f', 0, "json") is None
