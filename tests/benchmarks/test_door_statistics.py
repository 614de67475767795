"""The benchmark's arithmetic."""

import itertools

import pytest
from benchmarks.doorbench.statistics import Spread, differences, due_times, percentile, ratios, spread
from hypothesis import given
from hypothesis import strategies as st

finite = st.floats(min_value=-1e9, max_value=1e9)


def test_percentiles_take_the_nearest_rank() -> None:
    samples = [float(value) for value in range(1, 101)]
    assert [percentile(samples, quantile) for quantile in (0, 0.5, 0.99, 1)] == [1, 50, 99, 100]


def test_a_single_sample_is_every_percentile() -> None:
    assert {percentile([7.0], quantile) for quantile in (0, 0.01, 0.5, 0.999, 1)} == {7.0}


@given(st.lists(finite, min_size=1), st.floats(min_value=0, max_value=1))
def test_at_least_the_asked_share_of_samples_lies_at_or_below_a_percentile(
    samples: list[float], quantile: float
) -> None:
    ordered = sorted(samples)
    found = percentile(ordered, quantile)
    assert found in samples
    assert sum(sample <= found for sample in samples) >= quantile * len(samples)


def test_percentiles_of_nothing_and_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        percentile([1.0], 50)


def test_a_spread_is_the_median_between_the_extremes() -> None:
    assert spread([3, 1, 10]) == Spread(median=3, low=1, high=10)
    with pytest.raises(ValueError, match="no values"):
        spread([])


def test_ratios_and_differences_compare_a_round_with_itself_and_skip_unmeasured_rounds() -> None:
    ours, theirs = [2.0, None, 9.0, 4.0], [1.0, 5.0, 3.0, 0.0]
    assert ratios(ours, theirs) == [2.0, 3.0]
    assert differences(ours, theirs) == [1.0, 6.0, 4.0]


def test_due_times_are_evenly_spaced_and_do_not_drift() -> None:
    dues = due_times(start_ns=1_000, rate_per_s=150, duration_s=100)
    assert len(dues) == 15_000
    assert dues[0] == 1_000
    assert dues[150 * 99] == 1_000 + 99 * 10**9
    assert {later - sooner for sooner, later in itertools.pairwise(dues)} == {6_666_666, 6_666_667}


def test_an_open_loop_needs_a_rate() -> None:
    with pytest.raises(ValueError, match="above zero"):
        due_times(start_ns=0, rate_per_s=0, duration_s=1)
