"""What the dataplane counts: plain numbers on the way of a turn, Prometheus' words when somebody asks."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from luftpause.core.model.turns import ServiceClass
from luftpause.telemetry.tallies import Tally

GONE: Final = "gone"
"""The status counted for a client that left before its answer began."""

_FIRST_BYTE_BUCKETS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_HELD_BUCKETS_S: Final = (0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)


class Counts:
    """What is counted of one class of turns.

    Attributes:
        statuses: how many chat requests were answered, by status.
        held: seconds that turns waited for their place.
        first_byte: seconds that turns waited for their engine's first byte.
    """

    __slots__ = ("first_byte", "held", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.held = Tally(_HELD_BUCKETS_S)
        self.first_byte = Tally(_FIRST_BYTE_BUCKETS_S)

    def answered(self, status: str) -> None:
        """Count a chat request."""
        self.statuses[status] = self.statuses.get(status, 0) + 1


class DataplaneMetrics(Collector):
    """Counts and distributions of one dataplane.

    Args:
        open_turns: returns how many turns are open.
    """

    content_type: Final = b"text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, open_turns: Callable[[], int]) -> None:
        self._open_turns = open_turns
        self._counts = {kind: Counts() for kind in (*ServiceClass, None)}
        self._left_out: dict[str, int] = {}

    def of(self, service_class: ServiceClass | None) -> Counts:
        """Return the counts of a class; None: of requests that were refused before it was known."""
        return self._counts[service_class]

    def left_out(self, tools: Iterable[str]) -> bool:
        """Count tools that a request offered and no engine was told of; return whether one of them is new here."""
        new = False
        for tool in tools:
            new = new or tool not in self._left_out
            self._left_out[tool] = self._left_out.get(tool, 0) + 1
        return new

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
        for service_class, counts in self._counts.items():
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
        for tool, count in self._left_out.items():
            left_out.add_metric((tool,), count)
        yield left_out
