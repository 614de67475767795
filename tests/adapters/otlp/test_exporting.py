"""The thread that sends, with sinks that the test plays. Against a receiver of OTLP: tests/stories/test_tracing.py."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from luftpause.adapters.otlp.exporting import BATCH_MAX, FLUSH_S, OtlpTelemetry
from luftpause.core.model.traces import TraceContext
from luftpause.ports.tracing import Span, SpanKind
from luftpause.telemetry.exposition import Family, Sample

WAIT_S = 20.0
AT = TraceContext(trace="0af7651916cd43dd8448eb211c80319c", span="b7ad6b7169203331")


def span(name: str, *, sampled: bool = True) -> Span:
    at = TraceContext(trace=AT.trace, span=AT.span, sampled=sampled)
    return Span(name=name, at=at, kind=SpanKind.INTERNAL, began_ns=1, ended_ns=2)


class Spans:
    """Keeps what it is sent; blocks until it `may` go on, and until it is shut down."""

    def __init__(self, result: SpanExportResult | Exception = SpanExportResult.SUCCESS) -> None:
        self.result = result
        self.batches: list[list[str]] = []
        self.services: set[object] = set()
        self.may = threading.Event()
        self.may.set()
        self.asked = threading.Event()
        self.is_shut_down = False

    def export(self, spans: Sequence[ReadableSpan], /) -> SpanExportResult:
        self.asked.set()
        assert self.may.wait(WAIT_S)
        self.batches.append([each.name for each in spans])
        self.services.update(each.resource.attributes["service.name"] for each in spans)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def shutdown(self) -> None:
        self.is_shut_down = True
        self.may.set()


class Numbers:
    """Keeps the names and values of what it is sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, float]] = []
        self.came = threading.Event()
        self.is_shut_down = False

    def export(self, metrics_data: MetricsData, /) -> MetricExportResult:
        found: dict[str, float] = {}
        for of_resource in metrics_data.resource_metrics:
            for metric in of_resource.scope_metrics[0].metrics:
                for point in metric.data.data_points:
                    found[metric.name] = getattr(point, "value", 0.0)
        self.sent.append(found)
        self.came.set()
        return MetricExportResult.SUCCESS

    def shutdown(self) -> None:
        self.is_shut_down = True


def test_what_is_left_is_sent_at_the_end() -> None:
    async def main() -> None:
        spans, numbers = Spans(), Numbers()
        telemetry = OtlpTelemetry({}, spans=spans, counts=numbers)
        telemetry.counts("x", lambda: (Family("turns", "said", "counter", (Sample("turns_total", (), 3.0),)),))
        telemetry.start()
        telemetry.tracer("x").ended(span("a"))
        telemetry.tracer("x").ended(span("unwanted", sampled=False))
        telemetry.tracer("y").ended(span("b"))
        await asyncio.to_thread(telemetry.close)
        assert spans.batches == [["a", "b"]]
        assert spans.services == {"luftpause-x", "luftpause-y"}
        assert numbers.sent == [{"turns": 3.0}]
        assert (spans.is_shut_down, numbers.is_shut_down, telemetry.dropped) == (True, True, 0)

    asyncio.run(main())


def test_more_than_a_batch_is_sent_in_several() -> None:
    async def main() -> None:
        spans = Spans()
        telemetry = OtlpTelemetry({}, spans=spans, counts=Numbers())
        for number in range(BATCH_MAX + 1):
            telemetry.tracer("x").ended(span(f"s{number}"))
        telemetry.start()
        await asyncio.to_thread(telemetry.close)
        assert [len(batch) for batch in spans.batches] == [BATCH_MAX, 1]

    asyncio.run(main())


def test_what_nobody_keeps_up_with_is_dropped_and_counted_and_the_rest_is_sent() -> None:
    async def main() -> None:
        spans = Spans()
        spans.may.clear()
        telemetry = OtlpTelemetry({}, spans=spans, counts=Numbers(), waiting_max=2)
        telemetry.start()
        tracer = telemetry.tracer("x")
        tracer.ended(span("first"))
        assert await asyncio.to_thread(spans.asked.wait, WAIT_S)
        for name in ("a", "b", "too many"):
            tracer.ended(span(name))
        assert (telemetry.dropped, tracer.dropped, telemetry.tracer("y").dropped) == (1, 1, 0)
        spans.may.set()
        await asyncio.to_thread(telemetry.close)
        assert spans.batches == [["first"], ["a", "b"]]

    asyncio.run(main())


@pytest.mark.parametrize("result", [SpanExportResult.FAILURE, ConnectionError("nobody is there")])
def test_what_is_refused_is_counted(result: SpanExportResult | Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        spans = Spans(result)
        telemetry = OtlpTelemetry({}, spans=spans, counts=Numbers())
        telemetry.start()
        telemetry.tracer("x").ended(span("a"))
        await asyncio.to_thread(telemetry.close)
        assert (telemetry.dropped, telemetry.tracer("x").dropped, telemetry.tracer("y").dropped) == (1, 1, 0)

    asyncio.run(main())
    assert "spans_dropped" in caplog.messages


def test_closing_gives_up_on_who_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    assert FLUSH_S <= 2.0

    async def main() -> None:
        spans = Spans()
        spans.may.clear()
        telemetry = OtlpTelemetry({}, spans=spans, counts=Numbers())
        telemetry.start()
        telemetry.tracer("x").ended(span("a"))
        await asyncio.to_thread(telemetry.close)
        assert spans.is_shut_down
        telemetry.tracer("x").ended(span("late"))
        assert telemetry.dropped == 1

    asyncio.run(main())
    (unfinished,) = [each for each in caplog.records if each.message == "telemetry_unfinished"]
    assert unfinished.__dict__["unsent_spans"] == 1


def test_counts_are_sent_again_and_again() -> None:
    async def main() -> None:
        numbers = Numbers()
        telemetry = OtlpTelemetry({"OTEL_METRIC_EXPORT_INTERVAL": "100"}, spans=Spans(), counts=numbers)
        telemetry.start()
        for _ in range(2):
            assert await asyncio.to_thread(numbers.came.wait, WAIT_S)
            numbers.came.clear()
        await asyncio.to_thread(telemetry.close)
        assert len(numbers.sent) >= 2

    asyncio.run(main())


def test_a_collector_of_traces_alone_is_sent_no_counts() -> None:
    async def main() -> None:
        spans, numbers = Spans(), Numbers()
        telemetry = OtlpTelemetry({"OTEL_METRICS_EXPORTER": "none"}, spans=spans, counts=numbers)
        telemetry.start()
        telemetry.tracer("x").ended(span("a"))
        await asyncio.to_thread(telemetry.close)
        assert (spans.batches, numbers.sent) == ([["a"]], [])

    asyncio.run(main())


def test_a_service_has_the_name_that_its_environment_gives() -> None:
    async def main() -> None:
        spans = Spans()
        telemetry = OtlpTelemetry({"OTEL_SERVICE_NAME": "ours"}, spans=spans, counts=Numbers())
        telemetry.start()
        telemetry.tracer("x").ended(span("a"))
        await asyncio.to_thread(telemetry.close)
        assert spans.services == {"ours"}

    asyncio.run(main())
