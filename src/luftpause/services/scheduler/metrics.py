"""What the scheduler counted, for Prometheus, in a registry of its own; its objects are made when somebody asks."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel
from luftpause.core.scheduling.state import State
from luftpause.core.scheduling.view import held_by_class, view_tools
from luftpause.services.scheduler.tally import DecisionTally

_OTHER: Final = ("", "other")

_KINDS: dict[type[Action], str] = {
    PlaceTurn: "place",
    HoldTurn: "hold",
    RefuseTurn: "refuse",
    ForgetRun: "forget",
    LoadModel: "load",
    UnloadModel: "unload",
    DropKv: "drop_kv",
}


class SchedulerMetrics:
    """Reads what was counted, and the state's gauges, when asked.

    Args:
        tally: what is counted.
        read_state: returns the scheduler's state of the moment.
        now: returns the present on that state's clock.
    """

    def __init__(self, tally: DecisionTally, read_state: Callable[[], State], now: Callable[[], Instant]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Tallies(tally))
        self._registry.register(_StateGauges(read_state, now))

    def show(self, name: str, said: str, read: Callable[[], int]) -> None:
        """Show a counter that somebody else keeps: `read` returns what it has come to."""
        self._registry.register(_Borrowed(name, said, read))

    def render(self) -> bytes:
        """Return everything in Prometheus text format."""
        return generate_latest(self._registry)


class _Tallies(Collector):
    """Shows a tally."""

    def __init__(self, tally: DecisionTally) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        """Read the tally."""
        tally = self._tally
        yield HistogramMetricFamily(
            "luftpause_scheduler_decide_seconds",
            "Time that one decision took.",
            buckets=tally.seconds.buckets(),
            sum_value=tally.seconds.sum,
        )
        given = CounterMetricFamily("luftpause_scheduler_decisions", "Orders that the scheduler gave.", labels=["kind"])
        for kind, word in _KINDS.items():
            given.add_metric([word], tally.orders.get(kind, 0))
        yield given
        yield CounterMetricFamily("luftpause_scheduler_faults", "Events on which deciding failed.", value=tally.faults)


class _Borrowed(Collector):
    """Reads a counter that somebody else keeps."""

    def __init__(self, name: str, said: str, read: Callable[[], int]) -> None:
        self._name = name
        self._said = said
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Read it."""
        yield CounterMetricFamily(self._name, self._said, value=self._read())


class _StateGauges(Collector):
    """Reads the state once per scrape, so that nothing is kept twice."""

    def __init__(self, read_state: Callable[[], State], now: Callable[[], Instant]) -> None:
        self._read_state = read_state
        self._now = now

    def describe(self) -> Iterator[Metric]:
        """Name the gauges without reading a state: registering asks for names only."""
        yield _held_family()
        yield _in_flight_family()
        yield _healthy_family()
        yield _out_family()
        yield _pause_family()

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
        yield from _tool_gauges(state, self._now())


def _tool_gauges(state: State, now: Instant) -> tuple[Metric, Metric]:
    """Return the gauges of the busiest tools; runs out on any other, and on one that is named so, count for `other`."""
    out, pause = _out_family(), _pause_family()
    elsewhere = sum(state.tools.out.values())
    for row in view_tools(state, now):
        if (row.server, row.tool) == _OTHER:
            continue
        out.add_metric([row.server, row.tool], row.running)
        elsewhere -= row.running
        for quantile, seconds in (("0.5", row.p50_s), ("0.9", row.p90_s)):
            pause.add_metric([row.server, row.tool, quantile], seconds)
    if elsewhere:
        out.add_metric(_OTHER, elsewhere)
    return out, pause


def _held_family() -> GaugeMetricFamily:
    return GaugeMetricFamily("luftpause_held_turns", "Turns that wait for a place.", labels=["class"])


def _in_flight_family() -> GaugeMetricFamily:
    return GaugeMetricFamily("luftpause_in_flight_turns", "Turns placed and not ended.", labels=["replica"])


def _healthy_family() -> GaugeMetricFamily:
    return GaugeMetricFamily("luftpause_replica_healthy", "Whether the last probe was good.", labels=["replica"])


def _out_family() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "luftpause_tool_paused_runs",
        "Runs out on a tool now: the 50 busiest tools, then other.",
        labels=["server", "tool"],
    )


def _pause_family() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "luftpause_tool_pause_seconds",
        "Time within which this share of the runs is back from a tool, as learned; the 50 busiest tools.",
        labels=["server", "tool", "quantile"],
    )
