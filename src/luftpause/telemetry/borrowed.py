"""Numbers that somebody else keeps, shown to Prometheus when it asks."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

DROPPED_SPANS: Final = "luftpause_telemetry_dropped_spans"
_DROPPED_SAID: Final = "Spans that were not sent: what takes them did not keep up, or was not there"


class BorrowedCounter(Collector):
    """Reads a counter that somebody else keeps."""

    def __init__(self, name: str, said: str, read: Callable[[], int]) -> None:
        self._name = name
        self._said = said
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Read it."""
        yield CounterMetricFamily(self._name, self._said, value=self._read())


def dropped_spans(read: Callable[[], int]) -> BorrowedCounter:
    """Return how every service shows the spans that it could not get rid of."""
    return BorrowedCounter(DROPPED_SPANS, _DROPPED_SAID, read)
