"""Durations and sizes."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.config.units import BYTES_MAX, SECONDS_MAX, seconds, size_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10m", 600), ("2h30m", 9000), ("500ms", 0.5), ("1.5s", 1.5), ("0s", 0), ("1d", 86400), ("1m1ms", 60.001)],
)
def test_a_duration_is_the_sum_of_its_parts_in_seconds(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text", ["", "10", "m", "10 m", "-1s", "1s ", "1s\n", "1e3s", "٣s", "1w", "s1", "366d", "9" * 400 + "s"]
)
def test_what_is_no_duration_or_longer_than_a_year_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        seconds(text)


@given(st.integers(0, 300), st.integers(0, 23), st.integers(0, 59), st.integers(0, 999))
def test_any_sum_of_days_hours_minutes_and_milliseconds_comes_back(
    days: int, hours: int, minutes: int, ms: int
) -> None:
    expected = days * 86400 + hours * 3600 + minutes * 60 + ms / 1000
    assert seconds(f"{days}d{hours}h{minutes}m{ms}ms") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0B", 0),
        ("600MB", 600_000_000),
        ("20GiB", 20 * 2**30),
        ("1.5 KiB", 1536),
        ("1kB", 1000),
        ("1KB", 1000),
        ("0.1GB", 100_000_000),
        ("2TiB", 2**41),
    ],
)
def test_a_size_is_in_bytes(text: str, expected: int) -> None:
    assert size_bytes(text) == expected


@pytest.mark.parametrize(
    "text", ["", "10", "GB", "1 gb", "-1B", "1MB ", "1  MB", "1e3B", "٣B", "1PiB", "9" * 5000 + "B", "2000000TiB"]
)
def test_what_is_no_size_or_larger_than_any_machine_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        size_bytes(text)


@given(st.integers(0, 2**29), st.sampled_from(["B", "KiB", "MiB", "GiB"]))
def test_whole_sizes_are_exact(number: int, unit: str) -> None:
    assert size_bytes(f"{number}{unit}") == number * 2 ** {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]


@given(st.text(max_size=20))
def test_any_text_is_a_bounded_number_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 <= seconds(text) <= SECONDS_MAX
    with contextlib.suppress(ValueError):
        assert 0 <= size_bytes(text) <= BYTES_MAX
