"""What the dataplane counts, in Prometheus' words, in a registry of its own."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from luftpause.core.model.turns import ServiceClass

GONE: Final = "gone"
"""The status counted for a client that left before its answer began."""

_FIRST_BYTE_BUCKETS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_HELD_BUCKETS_S: Final = (0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)


class DataplaneMetrics:
    """Counters and histograms of one dataplane."""

    content_type: Final = b"text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, open_turns: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "luftpause_dataplane_requests",
            "Chat requests answered, by status and class",
            ("status", "class"),
            registry=self._registry,
        )
        first_byte = Histogram(
            "luftpause_dataplane_first_byte_seconds",
            "From the request being whole to the engine's first byte of a 200",
            ("class",),
            buckets=_FIRST_BYTE_BUCKETS_S,
            registry=self._registry,
        )
        held = Histogram(
            "luftpause_dataplane_held_seconds",
            "From the request being whole to its placement",
            ("class",),
            buckets=_HELD_BUCKETS_S,
            registry=self._registry,
        )
        self._first_byte = {kind: first_byte.labels(kind.value) for kind in ServiceClass}
        self._held = {kind: held.labels(kind.value) for kind in ServiceClass}
        self._answered: dict[tuple[str, ServiceClass | None], Counter] = {}
        gauge = Gauge("luftpause_dataplane_open_turns", "Turns held or running", registry=self._registry)
        gauge.set_function(open_turns)

    def answered(self, status: str, service_class: ServiceClass | None) -> None:
        """Count a chat request; its class is None when it was refused before that was known."""
        counter = self._answered.get((status, service_class))
        if counter is None:
            name = service_class.value if service_class is not None else ""
            counter = self._answered[status, service_class] = self._requests.labels(status, name)
        counter.inc()

    def held(self, service_class: ServiceClass, seconds: float) -> None:
        """Take in how long a turn waited for its place."""
        self._held[service_class].observe(seconds)

    def first_byte(self, service_class: ServiceClass, seconds: float) -> None:
        """Take in how long a turn waited for its engine's first byte."""
        self._first_byte[service_class].observe(seconds)

    def render(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)
