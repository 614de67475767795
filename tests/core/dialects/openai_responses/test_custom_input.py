import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.openai_responses.custom_input import CustomInput


def read(*pieces: str) -> str:
    custom = CustomInput()
    said = "".join([custom.grown(piece) for piece in pieces]) + custom.ended()
    assert said == custom.text()
    return said


@given(st.text(), st.booleans(), st.randoms())
def test_a_text_is_read_however_it_comes(text: str, ascii_only: bool, chance: random.Random) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only)
    places = sorted(chance.randrange(len(arguments) + 1) for _ in range(8))
    pieces = [arguments[start:end] for start, end in zip([0, *places], [*places, len(arguments)], strict=True)]
    assert read(*pieces) == text
    assert read(*arguments) == text


def test_it_is_given_out_while_it_comes() -> None:
    custom = CustomInput()
    assert [custom.grown(piece) for piece in (' { "inp', 'ut" : "a', "b\\", 'n\\ud83d\\ude', '00c"', '}')] == [
        "", "a", "b", "\n", "😀c", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input": "two\nlines\t"}', "two\nlines\t"),
        ('{"input": "cut \\ud83d."}', "cut ?."),
        ('{"input": "cut \\udc00."}', "cut ?."),
        ('{"input": "\\ud83d\\ud83d\\ude00"}', "?😀"),
        ('{"input": "bad \\q."}', "bad \\q."),
        ('{"input": "bad \\uZZ and so on, no escape"', 'bad \\uZZ and so on, no escape"'),
        ('{"input": "cut off\\u00', "cut off"),
        ('{"other": "x"}', ""),
        ("*** Begin Patch", ""),
        ("", ""),
    ],
)
def test_what_models_write_instead(arguments: str, text: str) -> None:
    assert read(arguments) == text
    assert read(*arguments) == text
