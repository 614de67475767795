"""Least squares for what costs time."""

import pytest

from luftpause.testkit.what_if.regression import nonnegative, robust

ROWS = [[1.0, float(x), float(x * x % 7)] for x in range(20)]


def test_what_made_the_targets_is_found() -> None:
    targets = [3.0 * a + 0.5 * b + 2.0 * c for a, b, c in ROWS]
    assert nonnegative(ROWS, targets) == pytest.approx([3.0, 0.5, 2.0])


def test_what_would_be_negative_is_0_and_the_rest_is_fitted_without_it() -> None:
    targets = [5.0 - 0.001 * b for _, b, _ in ROWS]
    found = nonnegative(ROWS, targets)
    assert found[0] == pytest.approx(5.0, abs=0.05)
    assert found[1] == 0.0


def test_an_unknown_that_nothing_tells_of_is_0() -> None:
    assert nonnegative([[2.0, 0.0], [4.0, 0.0]], [2.0, 4.0]) == pytest.approx([1.0, 0.0])


def test_what_is_far_off_is_left_out() -> None:
    targets = [2.0 * b + 1.0 for _, b, _ in ROWS]
    targets[3] = 900.0
    found, error = robust([row[:2] for row in ROWS], targets, nonnegative)
    assert found == pytest.approx([1.0, 2.0])
    assert error == pytest.approx(0.0, abs=1e-9)
