"""What the dataplane counted, in Prometheus' words, when somebody asks."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from luftpause.services.dataplane.counts import DoorCounts


class DataplaneMetrics(Collector):
    """Counts and distributions of one dataplane.

    Args:
        counts: what is counted.
        open_turns: returns how many turns are open.
        more: numbers that somebody else keeps.
    """

    content_type: Final = b"text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, counts: DoorCounts, open_turns: Callable[[], int], more: Sequence[Collector] = ()) -> None:
        self._counts = counts
        self._open_turns = open_turns
        self._more = more

    def collect(self) -> Iterator[Metric]:
        """Return the numbers of the moment, when somebody asks."""
        requests = CounterMetricFamily(
            "luftpause_dataplane_requests",
            "Chat requests answered, by status and class",
            labels=("status", "class"),
        )
        first_byte = HistogramMetricFamily(
            "luftpause_dataplane_first_byte_seconds",
            "From the request being whole to the engine's first byte of a 200",
            labels=("class",),
        )
        held = HistogramMetricFamily(
            "luftpause_dataplane_held_seconds", "From the request being whole to its placement", labels=("class",)
        )
        for service_class, counts in self._counts.by_class.items():
            name = service_class.value if service_class is not None else ""
            for status, count in counts.statuses.items():
                requests.add_metric((status, name), count)
            if service_class is not None:
                first_byte.add_metric((name,), counts.first_byte.buckets(), counts.first_byte.sum)
                held.add_metric((name,), counts.held.buckets(), counts.held.sum)
        yield from (requests, first_byte, held)
        open_turns = GaugeMetricFamily("luftpause_dataplane_open_turns", "Turns held or running")
        open_turns.add_metric((), self._open_turns())
        yield open_turns
        left_out = CounterMetricFamily(
            "luftpause_dataplane_tools_left_out",
            "Tools that run at a model's provider, offered in a request and left out of what its engine was sent",
            labels=("tool",),
        )
        for tool, count in self._counts.tools_left_out.items():
            left_out.add_metric((tool,), count)
        yield left_out
        edits = CounterMetricFamily(
            "luftpause_dataplane_edits", "Requests sent on with this member set by the door", labels=("member",)
        )
        for edit, count in self._counts.edits.items():
            edits.add_metric((edit.value,), count)
        yield edits
        for numbers in self._more:
            yield from numbers.collect()
