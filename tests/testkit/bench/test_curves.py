"""Curves for plots."""

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId
from luftpause.testkit.bench.curves import cache_course, middle_curves, quantiles
from luftpause.testkit.bench.samples import QUANTILES, TIME_SLICES, Curves
from luftpause.testkit.sim.past import AnsweredTurn


def answered(ended_at: float, cached: int) -> AnsweredTurn:
    return AnsweredTurn(
        ended_at=ended_at,
        principal=ANONYMOUS_PRINCIPAL,
        caller=CallerId("c"),
        prompt_tokens=200,
        cached_tokens=cached,
        reply_tokens=10,
        known_tokens=100,
    )


def test_run_times_are_kept_by_rank_from_the_shortest_to_the_longest() -> None:
    kept = quantiles([float(number) for number in range(1001)])
    assert (len(kept), kept[0], kept[QUANTILES // 2], kept[-1]) == (QUANTILES + 1, 0.0, 500.0, 1000.0)
    assert quantiles([]) == ()


def test_what_a_cache_still_had_is_kept_slice_by_slice() -> None:
    course = cache_course([answered(5.0, 50), answered(10.001, 120), answered(70.0, 30)], 10.0, 70.0)
    assert len(course) == TIME_SLICES
    assert course[0] == (100, 100)
    assert course[-1] == (30, 100)
    assert sum(known for _, known in course) == 200


def test_seeds_become_one_curve() -> None:
    one = Curves(run_s={"batch": (1.0, 3.0)}, cached=((1, 2),))
    other = Curves(run_s={"batch": (2.0, 5.0)}, cached=((3, 4),))
    middle = middle_curves([one, other, Curves()])
    assert middle == Curves(run_s={"batch": (1.5, 4.0)}, cached=((4, 6),))
