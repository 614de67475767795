"""Ages, as peers tell them."""

import math

import pytest

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.ages import AGE_S_MAX, age_in, instant_before


@pytest.mark.parametrize(
    ("told", "taken"),
    [(0.0, 0.0), (7.5, 7.5), (-1.0, 0.0), (math.nan, 0.0), (-math.inf, 0.0), (math.inf, AGE_S_MAX)],
)
def test_an_age_is_a_number_from_zero_to_forever(told: float, taken: float) -> None:
    assert age_in(told) == taken
    assert instant_before(Instant(10.0), told) == 10.0 - taken
