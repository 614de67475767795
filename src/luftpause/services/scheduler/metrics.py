"""What the scheduler counted, for Prometheus, in a registry of its own; its objects are made when somebody asks."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from luftpause.core.model.ids import Instant
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RecallTurn, RefuseTurn
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel
from luftpause.core.scheduling.state import State
from luftpause.core.scheduling.view import HeldView, held_by_class, view, view_tools
from luftpause.services.scheduler.tally import DecisionTally
from luftpause.telemetry.exposition import Counts, counts_of

_OTHER: Final = ("", "other")

_KINDS: dict[type[Action], str] = {
    PlaceTurn: "place",
    HoldTurn: "hold",
    RefuseTurn: "refuse",
    ForgetRun: "forget",
    LoadModel: "load",
    UnloadModel: "unload",
    DropKv: "drop_kv",
    RecallTurn: "recall",
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

    def show(self, numbers: Collector) -> None:
        """Show numbers that somebody else keeps."""
        self._registry.register(numbers)

    def counts(self) -> Counts:
        """Return the numbers of the moment."""
        return counts_of(self._registry)

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
        yield from _reason_families(tally)
        yield _token_family(tally)
        cut = CounterMetricFamily("luftpause_answers_cut", "Answers that were cut off at our cap.", labels=["class"])
        for service_class, times in tally.cut.items():
            cut.add_metric([service_class.value], times)
        yield cut
        yield CounterMetricFamily("luftpause_scheduler_faults", "Events on which deciding failed.", value=tally.faults)


def _reason_families(tally: DecisionTally) -> Iterator[Metric]:
    reasons = CounterMetricFamily(
        "luftpause_scheduler_decision_reasons", "Orders that the scheduler gave, by why.", labels=["kind", "reason"]
    )
    for kind, by_reason in tally.reasons.items():
        for reason, times in by_reason.items():
            reasons.add_metric([_KINDS[kind], _name_of(reason)], times)
    loads = CounterMetricFamily("luftpause_model_loads", "Loads that were ordered.", labels=["model"])
    for model, times in tally.loads.items():
        loads.add_metric([model], times)
    unloads = CounterMetricFamily(
        "luftpause_model_unloads",
        "Unloads that were ordered; makes_room are evictions for another model.",
        labels=["model", "reason"],
    )
    for (model, why), times in tally.unloads.items():
        unloads.add_metric([model, _name_of(why)], times)
    yield from (reasons, loads, unloads)


def _token_family(tally: DecisionTally) -> Metric:
    tokens = CounterMetricFamily(
        "luftpause_tokens",
        "Tokens of turns as their engines told; prompt_unknown where one does not say what was cached.",
        labels=["class", "kind"],
    )
    for service_class, by_kind in tally.tokens.items():
        for kind, count in by_kind.items():
            tokens.add_metric([service_class.value, kind], count)
    return tokens


def _name_of(reason: Enum | type) -> str:
    """Return a reason as a label: a refusal's code, another member's name, or the words of a class's name."""
    if isinstance(reason, RefusalReason):
        return reason.value
    if isinstance(reason, Enum):
        return reason.name.lower()
    return _WORD.sub(r"_\1", reason.__name__).lower().removeprefix("_")


_WORD: Final = re.compile(r"([A-Z])")


class _StateGauges(Collector):
    """Reads the state once per scrape, so that nothing is kept twice."""

    def __init__(self, read_state: Callable[[], State], now: Callable[[], Instant]) -> None:
        self._read_state = read_state
        self._now = now

    def describe(self) -> Iterator[Metric]:
        """Name the gauges without reading a state: registering asks for names only."""
        yield _held_family()
        yield from _caller_families()
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
        yield from _caller_gauges(view(state, self._now()).held)
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
    elsewhere = sum(sum(steps.values()) for steps in state.tools.out.values())
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


def _caller_gauges(rows: Sequence[HeldView]) -> tuple[Metric, Metric]:
    """Return the gauges of those who wait; callers of one name, of several principals or all others, count together."""
    counts: Counter[tuple[str, str]] = Counter()
    oldest: dict[str, float] = {}
    for row in rows:
        service_class = row.service_class.value
        counts[service_class, row.caller] += row.count
        oldest[service_class] = max(oldest.get(service_class, 0.0), row.oldest_s)
    by_caller, waits = _caller_families()
    for labels, count in counts.items():
        by_caller.add_metric(labels, count)
    for each in ServiceClass:
        waits.add_metric([each.value], oldest.get(each.value, 0.0))
    return by_caller, waits


def _caller_families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily(
            "luftpause_held_turns_by_caller",
            "Turns that wait for a place: of each class the 50 callers first in line, then other.",
            labels=["class", "caller"],
        ),
        GaugeMetricFamily("luftpause_held_oldest_seconds", "How long the oldest held turn waits.", labels=["class"]),
    )


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
