"""Weighted spans of time."""

import pytest

from luftpause.testkit.what_if.spans import Spans


def test_weight_times_seconds_is_that_of_the_part_asked_for() -> None:
    spans = Spans([(0.0, 4.0, 1.0), (2.0, 6.0, 2.0)])
    assert spans.within(0.0, 6.0) == pytest.approx(12.0)
    assert spans.within(1.0, 3.0) == pytest.approx(4.0)
    assert spans.within(-5.0, 1.0) == pytest.approx(1.0)
    assert spans.within(5.0, 99.0) == pytest.approx(2.0)
    assert spans.most() == 3.0


def test_what_began_counts_from_after_the_first_instant_to_the_second() -> None:
    spans = Spans([(1.0, 1.0, 5.0), (2.0, 2.0, 7.0)])
    assert [spans.begun(*each) for each in ((0.0, 1.0), (1.0, 2.0), (0.0, 9.0), (2.0, 3.0))] == [5.0, 7.0, 12.0, 0.0]


def test_without_spans_everything_is_0() -> None:
    spans = Spans([])
    assert (spans.most(), spans.within(0.0, 9.0), spans.begun(0.0, 9.0)) == (0.0, 0.0, 0.0)
