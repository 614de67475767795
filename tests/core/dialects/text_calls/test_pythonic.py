import json

import pytest

from luftpause.core.dialects.text_calls.pythonic import TEXT_MAX, literal, pythonic_calls


def test_each_kind_of_value_is_read() -> None:
    text = r"""[f(a='it\'s', b="\u00e9\n\x41\q", c=''' x ''', d=-1.5e2, e=.5, g=(1, 2,), h={'k': None}, i=True)]"""
    reading = pythonic_calls(text, 0)
    assert reading is not None
    (call,) = reading[0]
    assert json.loads(call.arguments) == {
        "a": "it's", "b": "é\nA\\q", "c": " x ", "d": -150.0, "e": 0.5, "g": [1, 2], "h": {"k": None}, "i": True,
    }  # fmt: skip
    assert reading[1] == len(text)


@pytest.mark.parametrize("text", ["f(a=1); g(b=2)", "[f(a=1), g(b=2)]", "f(a=1)\ng(b=2)\nand then"])
def test_several_calls_follow_each_other(text: str) -> None:
    reading = pythonic_calls(text, 0)
    assert reading is not None
    assert [(call.name, call.arguments) for call in reading[0]] == [("f", '{"a": 1}'), ("g", '{"b": 2}')]
    assert text[reading[1] :] in ("", "\nand then")


@pytest.mark.parametrize(
    "text",
    [
        "", "f", "f(", "f(1)", "f(a)", "f(a=1", "f(a=b)", "f(a=1 b=2)", "f(a=1, a=2)", "[f(a=1)", "[f(a=1) x]",
        "f(a=1x)", "f(a='x)", "f(a={1: 2})", "f(a={'x' 1})", "f(a=" + "[" * 60 + "]" * 60 + ")",
        "f(a='" + r"\Uffffffff" + "')",
    ],
)  # fmt: skip
def test_what_is_no_call_is_none(text: str) -> None:
    assert pythonic_calls(text, 0) is None


def test_a_long_text_is_not_looked_at() -> None:
    assert pythonic_calls("f(a='" + "x" * TEXT_MAX + "')", 0) is None
    assert literal("'" + "x" * TEXT_MAX + "'") is None


def test_a_literal_is_the_whole_text() -> None:
    assert literal(" {'a': [1, \"b\", true]} ") == {"a": [1, "b", True]}
    assert literal("{'a': 1} and more") is None
    assert literal("a") is None
