"""Hostile text made safe to print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.telemetry.printable import printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ünïcode 漢字", "plain ünïcode 漢字"),
        ("a\nb\r\t\0", r"a\u000ab\u000d\u0009\u0000"),
        ("\x1b[31mred\x9b0m", r"\u001b[31mred\u009b0m"),
        ("\u202eright\u2028", r"\u202eright\u2028"),
        ("\udc80\U000e0001", r"\udc80\U000e0001"),
    ],
)
def test_what_is_not_printable_becomes_an_escape(text: str, expected: str) -> None:
    assert printable(text) == expected


@given(st.text(st.characters()))
def test_the_result_is_always_printable_and_whatever_was_printable_stays(text: str) -> None:
    result = printable(text)
    assert result.isprintable()
    assert result == text or not text.isprintable()
