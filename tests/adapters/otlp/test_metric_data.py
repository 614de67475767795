from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import Gauge, Histogram, Sum
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as PrometheusCounter
from prometheus_client import Gauge as PrometheusGauge
from prometheus_client import Histogram as PrometheusHistogram

from luftpause.adapters.otlp.metric_data import Told, metric_data
from luftpause.telemetry.exposition import counts_of

SCOPE = InstrumentationScope("luftpause", "0")


def test_what_prometheus_is_shown_is_sent_as_the_same_numbers() -> None:
    registry = CollectorRegistry()
    PrometheusCounter("turns", "Turns", ["class"], registry=registry).labels("batch").inc(3)
    PrometheusGauge("open", "Open turns", registry=registry).set(2)
    held = PrometheusHistogram("held_seconds", "Held", ["class"], buckets=(1, 2), registry=registry)
    for value in (0.5, 1.5, 1.5, 9.0):
        held.labels("batch").observe(value)
    sent = metric_data([Told(Resource({}), counts_of(registry), 5, 7)], SCOPE)
    by_name = {metric.name: metric.data for metric in sent.resource_metrics[0].scope_metrics[0].metrics}
    turns, opened, waits = by_name["turns"], by_name["open"], by_name["held_seconds"]
    assert isinstance(turns, Sum)
    assert turns.is_monotonic
    assert [(point.attributes, point.value) for point in turns.data_points] == [({"class": "batch"}, 3.0)]
    assert isinstance(opened, Gauge)
    assert [point.value for point in opened.data_points] == [2.0]
    assert isinstance(waits, Histogram)
    (point,) = waits.data_points
    assert (point.attributes, point.count, point.sum) == ({"class": "batch"}, 4, 12.5)
    assert (list(point.explicit_bounds), list(point.bucket_counts)) == ([1.0, 2.0], [1, 2, 1])
    assert (point.start_time_unix_nano, point.time_unix_nano) == (5, 7)
    encoded = encode_metrics(sent).resource_metrics[0].scope_metrics[0].metrics
    (distribution,) = [metric.histogram for metric in encoded if metric.name == "held_seconds"]
    assert not distribution.data_points[0].HasField("min")
    assert not distribution.data_points[0].HasField("max")
