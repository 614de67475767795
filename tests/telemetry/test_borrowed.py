"""Numbers that somebody else keeps."""

from luftpause.telemetry.borrowed import DROPPED_SPANS, dropped_spans
from luftpause.telemetry.exposition import counts_of, rendered


def test_they_are_read_whenever_somebody_asks() -> None:
    kept = [3]
    numbers = dropped_spans(lambda: kept[0])
    assert f"{DROPPED_SPANS}_total 3.0".encode() in rendered(counts_of(numbers))
    kept[0] = 4
    assert f"{DROPPED_SPANS}_total 4.0".encode() in rendered(counts_of(numbers))
