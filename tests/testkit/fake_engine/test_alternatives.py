"""Made-up alternatives of tokens."""

import math

from luftpause.testkit.fake_engine.alternatives import LETTERS_MASS, beside, chosen_among, options_in

MESSAGE = "Choose:\nA. urgent\nB) lookup\nC. other\n\nThe text: {}"


def test_options_are_lines_that_begin_with_a_letter() -> None:
    assert options_in(MESSAGE) == {"A": "urgent", "B": "lookup", "C": "other"}
    assert options_in("A. alone") == {}
    assert options_in("nothing to choose") == {}


def test_the_option_that_the_text_names_is_the_likeliest() -> None:
    for label, letter in (("urgent", "A"), ("lookup", "B"), ("other", "C")):
        message = MESSAGE.format(f"this is {label}")
        assert chosen_among(options_in(message), message, 0)[0][0] == letter


def test_probabilities_of_all_alternatives_sum_to_one_and_the_likeliest_is_first() -> None:
    likely = chosen_among(options_in(MESSAGE), MESSAGE, 3)
    assert math.isclose(sum(math.exp(logprob) for _, logprob in likely), 1.0)
    assert math.isclose(sum(math.exp(logprob) for letter, logprob in likely if letter in "ABC"), LETTERS_MASS)
    assert [logprob for _, logprob in likely] == sorted((logprob for _, logprob in likely), reverse=True)
    assert likely == chosen_among(options_in(MESSAGE), MESSAGE, 3) != chosen_among(options_in(MESSAGE), MESSAGE, 4)


def test_a_token_that_was_said_is_the_likeliest_of_its_alternatives() -> None:
    for token in ("The", "Danube"):
        likely = beside(token)
        assert likely[0][0] == token
        assert len({text for text, _ in likely}) == len(likely)
        assert math.isclose(sum(math.exp(logprob) for _, logprob in likely), 1.0)
