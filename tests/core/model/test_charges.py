"""What a turn is charged with when its answer becomes longer than that."""

import pytest

from luftpause.core.model.charges import BYTES_MAX, GROWTH_MIN, TOKENS_MAX, Charge, still_to_come

CHARGE = Charge(prompt=1000, reply=500, reply_bytes=100_000)


@pytest.mark.parametrize("reply_bytes", [-1, 0, 99_999, BYTES_MAX + 1])
def test_what_is_no_news_changes_nothing(reply_bytes: int) -> None:
    assert CHARGE.grown(reply_bytes, 0) is CHARGE


@pytest.mark.parametrize(("reply_bytes", "made"), [(100_000, 500), (400_000, 2000), (10_000_000, 50_000)])
def test_an_answer_is_charged_with_what_it_has_and_a_little_more(reply_bytes: int, made: int) -> None:
    grown = CHARGE.grown(reply_bytes, 0)
    assert CHARGE.made(reply_bytes) == made
    assert (grown.prompt, grown.reply) == (1000, made + still_to_come(made))
    assert grown.tokens == 1000 + grown.reply
    assert grown.grown(grown.reply_bytes - 1, 0) is grown
    assert grown.made(grown.reply_bytes) == grown.reply, "a token comes to as many bytes as before"


def test_of_a_long_answer_is_seldom_spoken() -> None:
    charge, spoken = Charge(prompt=1, reply=1, reply_bytes=200), 0
    while charge.reply_bytes <= 200 * 100_000:
        charge, spoken = charge.grown(charge.reply_bytes, 0), spoken + 1
    assert still_to_come(1) == GROWTH_MIN
    assert spoken < 35


@pytest.mark.parametrize(("reply_max", "reply_cap", "most"), [(600, 0, 600), (600, 4096, 600), (600, 550, 600)])
def test_no_more_is_charged_than_an_answer_may_have(reply_max: int, reply_cap: int, most: int) -> None:
    grown = Charge(prompt=1000, reply=500, reply_bytes=100_000, reply_cap=reply_cap).grown(110_000, reply_max)
    assert (grown.reply, grown.reply_bytes, grown.reply_cap) == (most, 0, reply_cap)
    assert grown.grown(10**9, reply_max) is grown


def test_an_answer_that_our_cap_does_not_end_is_charged_on() -> None:
    """No engine is told one in all words, and some refuse it."""
    capped = Charge(prompt=1000, reply=500, reply_bytes=100_000, reply_cap=600).grown(100_000, 0)
    assert (capped.reply, capped.reply_bytes, capped.reply_cap) == (600, 120_000, 600)
    beyond = capped.grown(capped.reply_bytes, 0)
    assert beyond.reply == 600 + still_to_come(600)
    assert beyond.reply_bytes > capped.reply_bytes


def test_wild_numbers_stay_numbers() -> None:
    grown = Charge(prompt=1, reply=TOKENS_MAX, reply_bytes=1).grown(BYTES_MAX, 0)
    assert (grown.reply, grown.reply_bytes) == (TOKENS_MAX, 0)
    grown = Charge(prompt=1, reply=1, reply_bytes=BYTES_MAX).grown(BYTES_MAX, 0)
    assert grown.reply_bytes == BYTES_MAX
