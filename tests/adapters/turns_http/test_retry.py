import pytest

from luftpause.adapters.turns_http.retry import PAUSE_MAX_S, Patience, retry_after_s

NOON = 1_420_113_600.0


@pytest.mark.parametrize(
    ("value", "pause_s"),
    [
        (None, 4.5),
        (b"7", 7.0),
        (b"0", 0.0),
        (b"1.5", 1.5),
        (b"Thu, 01 Jan 2015 12:00:30 GMT", 30.0),
        (b"Thu, 01 Jan 2015 11:00:00 GMT", 0.0),
        (b"Thu, 01 Jan 2015 12:00:30 -0000", 30.0),
        (b"soon", 4.5),
        (b"", 4.5),
        (b"-3", 4.5),
        (b"9" * 400, PAUSE_MAX_S),
    ],
)
def test_retry_after_is_seconds_or_a_date_or_else_what_is_given(value: bytes | None, pause_s: float) -> None:
    assert retry_after_s(value, NOON, otherwise_s=4.5) == pause_s


def test_pauses_double_up_to_a_most_and_spread() -> None:
    patience = Patience(backoff_s=0.5, backoff_max_s=5.0)
    assert [patience.pause_after(failures, 0.0) for failures in (1, 2, 3, 4, 5, 5000)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert [patience.pause_after(3, draw) for draw in (0.0, 0.5, 1.0)] == [2.0, 1.5, 1.0]
