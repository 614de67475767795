"""What else the fake engine might have said: made-up but repeatable alternatives of each token. Pure.

A message that lists options as letters, such as `A. urgent`, is answered with one of the letters: the likeliest is the
one whose option the rest of the message names, if it names one.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Alternatives: TypeAlias = tuple[tuple[str, float], ...]
"""Texts of tokens with the natural logarithms of their probabilities, the likeliest first."""

NAMED = 4.0
"""How much an option gains, in logits, when the message names it."""

LETTERS_MASS = 0.9
"""How likely any of the letters is; the rest goes to something else."""

SAID_MASS = 0.6
"""How likely a token was that was said, where nothing was to be chosen."""

_OPTION = re.compile(r"^([A-Z])[.)] (.+)$", re.MULTILINE)
_OTHERS = ("The", " Perhaps", "\n", " and", "Well")


def options_in(message: str) -> Mapping[str, str]:
    """Return the options of a message by their letters; none unless there are two."""
    found = dict(_OPTION.findall(message))
    return found if len(found) > 1 else {}


def chosen_among(options: Mapping[str, str], message: str, seed: int) -> Alternatives:
    """Return how likely each letter is as the first token, and one thing beside them."""
    told = _OPTION.sub("", message).lower()
    logits = {
        letter: _digest(f"{seed}:{label}:{message}") + (NAMED if label.lower() in told else 0.0)
        for letter, label in options.items()
    }
    scale = math.log(sum(map(math.exp, logits.values()))) - math.log(LETTERS_MASS)
    likely = [(letter, logit - scale) for letter, logit in logits.items()]
    return _sorted([*likely, (_OTHERS[0], math.log(1.0 - LETTERS_MASS))])


def beside(token: str) -> Alternatives:
    """Return a token that was said and what else might have been."""
    others = [each for each in _OTHERS if each != token]
    rest = math.log((1.0 - SAID_MASS) / len(others))
    return ((token, math.log(SAID_MASS)), *((each, rest) for each in others))


def _sorted(alternatives: Sequence[tuple[str, float]]) -> Alternatives:
    return tuple(sorted(alternatives, key=lambda each: -each[1]))


def _digest(text: str) -> float:
    """Return a number from 0 to 2."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**31
