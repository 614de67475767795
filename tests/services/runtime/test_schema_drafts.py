import pytest

from luftpause.services.runtime.schema_drafts import DRAFTS, LATEST, PURSE, Purse, TooMuchError, compiled, found_in


def test_a_purse_is_not_overdrawn() -> None:
    purse = Purse(2)
    purse.spend(2)
    with pytest.raises(TooMuchError):
        purse.spend(1)


def test_judging_without_steps_ends_at_once() -> None:
    token = PURSE.set(Purse(1))
    try:
        with pytest.raises(TooMuchError):
            list(DRAFTS[LATEST]({"properties": {"a": {"type": "null"}}}).iter_errors({"a": 1}))
    finally:
        PURSE.reset(token)


def test_a_pattern_that_cannot_be_had_says_why() -> None:
    assert compiled("(?=a)") == "invalid perl operator: (?="
    assert isinstance(compiled("((a{999}){999}){9}"), str)
    assert found_in("b", "abc")
    with pytest.raises(ValueError, match="missing"):
        found_in("[", "abc")
