import math

import pytest

from luftpause.services.runtime.soundness import DEPTH_MAX, oddity


def nested(depth: int) -> object:
    value: object = 1
    for level in range(depth):
        value = [value] if level % 2 else {"x": value}
    return value


@pytest.mark.parametrize("value", [1, {}, {"a": [1, 2.5, None, True, "ä 🙂"]}, nested(DEPTH_MAX - 1)])
def test_plain_values_are_sound(value: object) -> None:
    assert oddity({"x": value}) == ""


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ("\ud800", "surrogate"),
        ({"\udc00": 1}, "surrogate"),
        (math.nan, "finite"),
        (-math.inf, "finite"),
        (nested(DEPTH_MAX), "100 deep"),
        (nested(50_000), "100 deep"),
    ],
)
def test_what_cannot_be_carried_on_is_found_anywhere(odd: object, told: str) -> None:
    for value in (odd, [odd], {"x": [{"y": odd}]}):
        found = oddity({"fine": 1, "x": value})
        assert found.startswith("'x': ")
        assert told in found


def test_a_name_is_looked_at_too() -> None:
    assert oddity({"\udc00": 1}) == "'\\udc00': half of a surrogate pair is no text"
