"""When a run comes back, against a life table that is made up life by life."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.tool_history import (
    BOUNDS_S,
    BUCKETS,
    HALVED_AFTER,
    NOTHING_HEARD,
    PRIOR,
    bucket_of,
    taught,
)
from luftpause.core.scheduling.tool_returns import LAST_S, ReturnLaw, return_law

EDGES_S = (0.0, *BOUNDS_S)
SECONDS = st.one_of(st.floats(0, 2), st.floats(0, 1e5), st.sampled_from(EDGES_S))
PAUSES = st.lists(st.tuples(SECONDS, st.booleans()), max_size=25)
RUNNING = st.lists(st.tuples(SECONDS, st.integers(1, 5)), max_size=8)


def law_of(pauses: list[tuple[float, bool]], running: list[tuple[float, int]]) -> ReturnLaw:
    history = NOTHING_HEARD
    for seconds, is_lost in pauses:
        history = taught(history, seconds, Instant(0.0), is_lost=is_lost)
    return return_law(history, running)


def lives(pauses: list[tuple[float, bool]], running: list[tuple[float, int]]) -> list[tuple[int, float, bool]]:
    """Return a bucket, a weight and whether it came back, of everything that is known."""
    known = [(at, weight, True) for at, weight in enumerate(PRIOR)]
    for age, (seconds, is_lost) in enumerate(reversed(pauses), 1):
        known.append((bucket_of(seconds), 0.5 ** (age / HALVED_AFTER), not is_lost))
    total, out_now = sum(weight for _, weight, _ in known), sum(count for _, count in running)
    share = min(1.0, total / max(1, out_now))
    return [*known, *((bucket_of(seconds), share * count, False) for seconds, count in running)]


def survival_at_bounds(known: list[tuple[int, float, bool]]) -> list[float]:
    out = [1.0]
    for bucket in range(BUCKETS - 1):
        came = sum(weight for at, weight, is_back in known if at == bucket and is_back)
        left = sum(weight for at, weight, is_back in known if at == bucket and not is_back)
        present = sum(weight for at, weight, _ in known if at >= bucket) - left / 2
        out.append(out[-1] * (1 - came / present))
    return out


@settings(deadline=None)
@given(PAUSES, RUNNING)
def test_survival_is_that_of_a_life_table(pauses: list[tuple[float, bool]], running: list[tuple[float, int]]) -> None:
    law = law_of(pauses, running)
    assert law.out == pytest.approx(survival_at_bounds(lives(pauses, running)))
    assert all(0 < later <= earlier for earlier, later in zip(law.out, law.out[1:], strict=False))
    for low, high, before, after in zip(EDGES_S, BOUNDS_S, law.out, law.out[1:], strict=False):
        assert law.survival(low) == pytest.approx(before)
        assert law.survival((low + high) / 2) == pytest.approx((before + after) / 2)


@settings(deadline=None)
@given(PAUSES, RUNNING, SECONDS)
def test_the_expected_return_is_what_survival_adds_up_to(
    pauses: list[tuple[float, bool]], running: list[tuple[float, int]], elapsed_s: float
) -> None:
    law = law_of(pauses, running)
    corners = sorted({elapsed_s, *(edge for edge in EDGES_S if edge > elapsed_s), max(elapsed_s, LAST_S)})
    area = sum((high - low) * law.survival((low + high) / 2) for low, high in pairwise(corners))
    area += LAST_S * law.survival(corners[-1])
    assert law.expected_return(elapsed_s) == pytest.approx(area / law.survival(elapsed_s), rel=1e-6)


@settings(deadline=None)
@given(PAUSES, RUNNING, st.floats(0, 0.9999))
def test_a_quantile_is_when_that_share_is_back(
    pauses: list[tuple[float, bool]], running: list[tuple[float, int]], share: float
) -> None:
    law = law_of(pauses, running)
    assert 1 - law.survival(law.quantile(share)) == pytest.approx(share, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(PAUSES, RUNNING, st.floats(0, 2000))
def test_no_wait_is_better_than_the_best(
    pauses: list[tuple[float, bool]], running: list[tuple[float, int]], worth_s: float
) -> None:
    law = law_of(pauses, running)

    def gain(wait_s: float) -> float:
        back_or_given_up = law.expected_return(0.0) - law.survival(wait_s) * law.expected_return(wait_s)
        return worth_s * (1 - law.survival(wait_s)) - back_or_given_up

    best = law.best_wait(worth_s)
    tried = [low + (high - low) * part / 7 for low, high in zip(EDGES_S, BOUNDS_S, strict=False) for part in range(8)]
    assert 0 <= best <= LAST_S
    assert gain(best) >= max(map(gain, tried)) - 1e-6


def test_nothing_is_worth_waiting_for_when_its_return_saves_nothing() -> None:
    law = law_of([(1.0, False)] * 9, [])
    assert (law.best_wait(0.0), law.best_wait(1e9)) == (0.0, LAST_S)
    assert 1.0 <= law.best_wait(5.0) <= 4.0


def test_an_unknown_tool_returns_as_the_prior_says() -> None:
    law = return_law(NOTHING_HEARD)
    assert law.quantile(0.5) == pytest.approx(2.0)
    assert law.survival(8.0) == pytest.approx(2 / 10)
    assert law.expected_return(0.0) == pytest.approx(19.0, abs=0.1)
    assert law.expected_return(8.0) > law.expected_return(0.0)


def test_a_tool_is_known_by_what_it_did() -> None:
    law = law_of([(10.0, False)] * 60, [])
    assert law.quantile(0.5) == pytest.approx(10.0, rel=0.2)
    assert law.expected_return(0.0) == pytest.approx(10.0, rel=0.2)
    assert law.expected_return(7.0) == pytest.approx(3.0, rel=0.5)


def test_who_is_out_for_long_makes_the_tool_slower_and_who_just_left_does_not() -> None:
    usual = law_of([(1.0, False)] * 20, [])
    stuck = law_of([(1.0, False)] * 20, [(600.0, 15)])
    fresh = law_of([(1.0, False)] * 20, [(0.01, 15)])
    assert stuck.survival(60.0) > 10 * usual.survival(60.0)
    assert fresh.survival(60.0) == pytest.approx(usual.survival(60.0), rel=0.01)


def test_who_was_given_up_did_not_return() -> None:
    law = law_of([(1.0, False), (300.0, True)] * 10, [])
    assert 0.4 < law.survival(299.0) < 0.6
    assert law.expected_return(200.0) > 1000.0


def test_a_busy_tool_is_judged_by_its_returns_and_not_by_the_many_that_are_out() -> None:
    law = law_of([(60.0, False)] * 500, [(float(second), 200) for second in range(60)])
    assert law.quantile(0.5) == pytest.approx(60.0, rel=0.2)


def test_long_after_everything_nothing_is_learned_by_waiting() -> None:
    law = law_of([(1.0, False)] * 9, [])
    assert law.expected_return(LAST_S) == law.expected_return(9 * LAST_S) == LAST_S
    assert law.survival(2 * LAST_S) == pytest.approx(law.out[-1] / math.e)
