"""Editing JSON that people wrote."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.cli.connecting.json_text import DEPTH_MAX, NotJsonError, laid_over, read

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e9, 1e9), _TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXTS, inner, max_size=3)),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_TEXTS, _VALUES, max_size=4)
_NOISE = st.sampled_from(["", " ", "\n", "\t", '// a } comment, "x"\n', "/* { ] */", "\r\n  "])


def _joined(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = dict(below)
    for key, value in above.items():
        there = both.get(key)
        both[key] = _joined(there, value) if isinstance(value, dict) and isinstance(there, dict) else value
    return both


def _written(value: object, draw: st.DrawFn) -> str:
    """A value as somebody may have written it."""

    def noise() -> str:
        return draw(_NOISE)

    if isinstance(value, dict):
        members = [
            f"{noise()}{json.dumps(key)}{noise()}:{noise()}{_written(each, draw)}" for key, each in value.items()
        ]
    elif isinstance(value, list):
        members = [_written(each, draw) for each in value]
    else:
        return f"{noise()}{json.dumps(value)}{noise()}"
    ends_in_comma: bool = draw(st.booleans())
    inside = ",".join(f"{member}{noise()}" for member in members) + ("," if members and ends_in_comma else "")
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{noise()}{begin}{inside}{noise()}{end}{noise()}"


@st.composite
def _texts(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    value = draw(_OBJECTS)
    return value, _written(value, draw)


@given(_texts(), _OBJECTS)
def test_what_is_put_in_is_there_and_all_else_stays(made: tuple[dict[str, Any], str], fragment: dict[str, Any]) -> None:
    value, text = made
    assert read(text).value == value
    after = laid_over(text, fragment)
    assert read(after).value == _joined(value, fragment)
    assert laid_over(after, fragment) == after
    for comment in ("// a } comment", "/* { ] */"):
        if not _replaces(value, fragment):
            assert after.count(comment) >= text.count(comment)


def _replaces(value: dict[str, Any], fragment: dict[str, Any]) -> bool:
    """Whether an object or list that may hold comments gives way to another value."""
    return any(
        key in value and (not isinstance(each, dict) or not isinstance(value[key], dict) or _replaces(value[key], each))
        for key, each in fragment.items()
    )


def test_new_members_look_like_their_neighbours() -> None:
    before = """{
    // first
    "a": {"b": 1}, // one
    "c": [1, 2] // last
}"""
    assert (
        laid_over(before, {"a": {"b": 2, "d": None}, "e": {"f": "g"}})
        == """{
    // first
    "a": {"b": 2,
        "d": null
    }, // one
    "c": [1, 2], // last
    "e": {
        "f": "g"
    }
}"""
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no value, line 1"),
        ("{", "no '}', line 1"),
        ('{\n"a" 1}', "no colon after 'a', line 2"),
        ('{"a": 1 "b": 2}', "no '}'"),
        ('{"a": 01}', "no '}'"),
        ("{'a': 1}", "no '}'"),
        ('{"a": NaN}', "no value"),
        ('{"a": "\x01"}', "control character"),
        ('{"a": 1} x', "something follows its end"),
        ("[1, 2", "no ']'"),
        ("/* never ends", "no value"),
        ("[" * (DEPTH_MAX + 2), "nested more than"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(NotJsonError, match=why):
        read(text)


def test_a_list_is_no_object_to_put_anything_into() -> None:
    with pytest.raises(NotJsonError, match="no JSON object"):
        laid_over("[]", {"a": 1})
