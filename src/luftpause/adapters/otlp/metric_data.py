"""What a service counted as OpenTelemetry's exporter takes it. Everything counts from the start of the process."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from luftpause.telemetry.exposition import Counts, Family, Labels, Sample

_BOUND: Final = "le"
_UNKNOWN: Final = cast("float", None)
"""Of what Prometheus' words do not tell. The exporter leaves it out, though its types want a number."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a service counted up to a moment, nanoseconds on the wall clock."""

    resource: Resource
    counts: Counts
    began_ns: int
    now_ns: int


def metric_data(told: Iterable[Told], scope: InstrumentationScope) -> MetricsData:
    """Return all of it for one request."""
    return MetricsData(
        [
            ResourceMetrics(
                each.resource, [ScopeMetrics(scope, [_metric(family, each) for family in each.counts], "")], ""
            )
            for each in told
        ]
    )


def _metric(family: Family, told: Told) -> Metric:
    data: Sum | Gauge | Histogram
    match family.kind:
        case "counter":
            points = [_number(each, told) for each in family.samples if not each.name.endswith("_created")]
            data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        case "histogram":
            data = Histogram(_distributions(family.samples, told), AggregationTemporality.CUMULATIVE)
        case _:
            data = Gauge([_number(each, told) for each in family.samples])
    return Metric(family.name, family.said, "", data)


def _number(sample: Sample, told: Told) -> NumberDataPoint:
    return NumberDataPoint(dict(sample.labels), told.began_ns, told.now_ns, sample.value)


@dataclass(slots=True)
class _Distribution:
    bounds: list[float] = field(default_factory=list[float])
    totals: list[int] = field(default_factory=list[int])
    total: float = 0.0


def _distributions(samples: Sequence[Sample], told: Told) -> list[HistogramDataPoint]:
    """Put the buckets of each set of labels together: Prometheus' hold all that is smaller, OpenTelemetry's do not."""
    found: dict[Labels, _Distribution] = {}
    for sample in samples:
        labels = tuple(each for each in sample.labels if each[0] != _BOUND)
        of = found.setdefault(labels, _Distribution())
        if sample.name.endswith("_bucket"):
            of.bounds.append(float(dict(sample.labels)[_BOUND]))
            of.totals.append(int(sample.value))
        elif sample.name.endswith("_sum"):
            of.total = sample.value
    return [_point(labels, of, told) for labels, of in found.items()]


def _point(labels: Labels, of: _Distribution, told: Told) -> HistogramDataPoint:
    counts = [total - before for total, before in zip(of.totals, [0, *of.totals], strict=False)]
    return HistogramDataPoint(
        attributes=dict(labels),
        start_time_unix_nano=told.began_ns,
        time_unix_nano=told.now_ns,
        count=of.totals[-1] if of.totals else 0,
        sum=of.total,
        bucket_counts=counts,
        explicit_bounds=of.bounds[:-1],
        min=_UNKNOWN,
        max=_UNKNOWN,
    )
