import json

import pytest

from luftpause.core.dialects.surrogates import mended


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (rb'"a\ud83d"', "a\ufffd"),
        (rb'"\ude00b"', "\ufffdb"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\uD83D\ud83d\uDE00"', "\ufffd\U0001f600"),
        (rb'"\\ud83d"', "\\ud83d"),
        (rb'"\n\u00e9"', "\né"),
    ],
)
def test_halves_are_replaced_and_nothing_else(written: bytes, expected: str) -> None:
    assert json.loads(mended(written)) == expected
