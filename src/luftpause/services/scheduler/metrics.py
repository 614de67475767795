"""What the scheduler counts, for Prometheus, in a registry of its own."""

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.state import State
from luftpause.core.scheduling.view import held_by_class

DECIDE_SECONDS_BUCKETS = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.1)


class SchedulerMetrics:
    """Counts decisions as they are made, and reads the state's gauges when asked.

    Args:
        read_state: returns the scheduler's state of the moment.
    """

    def __init__(self, read_state: Callable[[], State]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_StateGauges(read_state))
        self._decide_seconds = Histogram(
            "luftpause_scheduler_decide_seconds",
            "Time that one decision took.",
            buckets=DECIDE_SECONDS_BUCKETS,
            registry=self._registry,
        )
        actions = Counter(
            "luftpause_scheduler_decisions",
            "Orders that the scheduler gave.",
            ["kind"],
            registry=self._registry,
        )
        self._placed = actions.labels("place")
        self._held = actions.labels("hold")
        self._refused = actions.labels("refuse")
        self._forgotten = actions.labels("forget")
        self._faults = Counter(
            "luftpause_scheduler_faults", "Events on which deciding failed.", registry=self._registry
        )

    def decided(self, seconds: float, actions: Sequence[Action]) -> None:
        """Count one decision."""
        self._decide_seconds.observe(seconds)
        for action in actions:
            match action:
                case PlaceTurn():
                    self._placed.inc()
                case HoldTurn():
                    self._held.inc()
                case RefuseTurn():
                    self._refused.inc()
                case ForgetRun():
                    self._forgotten.inc()
                case _:
                    assert_never(action)

    def failed(self) -> None:
        """Count an event on which deciding failed."""
        self._faults.inc()

    def render(self) -> bytes:
        """Return everything in Prometheus text format."""
        return generate_latest(self._registry)


class _StateGauges(Collector):
    """Reads the state once per scrape, so that nothing is kept twice."""

    def __init__(self, read_state: Callable[[], State]) -> None:
        self._read_state = read_state

    def describe(self) -> Iterator[Metric]:
        """Name the gauges without reading a state: registering asks for names only."""
        yield _held_family()
        yield _in_flight_family()
        yield _healthy_family()

    def collect(self) -> Iterator[Metric]:
        """Read the gauges."""
        state = self._read_state()
        held = _held_family()
        for service_class, count in held_by_class(state).items():
            held.add_metric([service_class.value], count)
        yield held
        in_flight, healthy = _in_flight_family(), _healthy_family()
        for name, replica in sorted(state.replicas.items()):
            in_flight.add_metric([name], replica.in_flight)
            healthy.add_metric([name], float(replica.healthy))
        yield in_flight
        yield healthy


def _held_family() -> GaugeMetricFamily:
    return GaugeMetricFamily("luftpause_held_turns", "Turns that wait for a place.", labels=["class"])


def _in_flight_family() -> GaugeMetricFamily:
    return GaugeMetricFamily("luftpause_in_flight_turns", "Turns placed and not ended.", labels=["replica"])


def _healthy_family() -> GaugeMetricFamily:
    return GaugeMetricFamily("luftpause_replica_healthy", "Whether the last probe was good.", labels=["replica"])
