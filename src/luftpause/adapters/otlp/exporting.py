"""Sending spans and counts over OTLP/HTTP from a thread of its own: no turn waits for it or fails with it.

Where to, how long to wait and which headers to send say OpenTelemetry's own variables, `OTEL_EXPORTER_OTLP_ENDPOINT`
first. What cannot be sent is tried again for a while and then dropped; what is dropped is counted.
"""

import asyncio
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

import luftpause
from luftpause.adapters.otlp.metric_data import Told, metric_data
from luftpause.adapters.otlp.span_data import span_data
from luftpause.ports.tracing import Span
from luftpause.telemetry.exposition import Counts

WAITING_MAX: Final = 8192
"""Spans that wait for the thread; the next one is dropped."""
BATCH_MAX: Final = 512
"""Spans in one request."""
GATHER_S: Final = 1.0
"""So long spans are gathered before they are sent."""
FLUSH_S: Final = 2.0
"""How long closing waits until all is sent."""
COUNTS_PERIOD_S: Final = 60.0
"""Counts are sent so often, unless OTEL_METRIC_EXPORT_INTERVAL says otherwise, in milliseconds."""
_PERIOD_VARIABLE: Final = "OTEL_METRIC_EXPORT_INTERVAL"
_NAME_VARIABLE: Final = "OTEL_SERVICE_NAME"
_COUNTS_VARIABLE: Final = "OTEL_METRICS_EXPORTER"
"""`none` for collectors of traces alone."""
_log = logging.getLogger("luftpause.telemetry")


class SpanSink(Protocol):
    """What sends spans; blocks."""

    def export(self, spans: Sequence[ReadableSpan], /) -> SpanExportResult:
        """Send them, or say that it cannot be done."""
        ...

    def shutdown(self) -> None:
        """Give up, also what is being sent."""
        ...


class CountSink(Protocol):
    """What sends counts; blocks."""

    def export(self, metrics_data: MetricsData, /) -> MetricExportResult:
        """Send them, or say that it cannot be done."""
        ...

    def shutdown(self) -> None:
        """Give up, also what is being sent."""
        ...


class OtlpTelemetry:
    """A `ports.tracing.Telemetry`. `start` it on the event loop, `close` it last.

    Args:
        env: the environment, for the names of services and the period of counts.
        spans: sends spans; None: OpenTelemetry's exporter.
        counts: sends counts; None: OpenTelemetry's exporter.
        waiting_max: spans that may wait.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        spans: SpanSink | None = None,
        counts: CountSink | None = None,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._env = env
        self._spans: SpanSink = spans or OTLPSpanExporter()
        self._counts: CountSink = counts or OTLPMetricExporter()
        self._waiting_max = waiting_max
        self._sends_counts = env.get(_COUNTS_VARIABLE, "").strip().lower() != "none"
        self._scope = InstrumentationScope("luftpause", luftpause.__version__)
        self._instance = secrets.token_hex(8)
        self._resources: dict[str, Resource] = {}
        self._tracers: dict[str, ServiceTracer] = {}
        self._waiting: deque[tuple[Span, ServiceTracer]] = deque()
        self._told: MetricsData | None = None
        self._reads: dict[str, Callable[[], Counts]] = {}
        self._began_ns = time.time_ns()
        self._under_way = 0
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._over = False
        self._timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    @property
    def dropped(self) -> int:
        """How many spans of all services were dropped since the start."""
        return sum(tracer.dropped for tracer in tuple(self._tracers.values()))

    def tracer(self, service: str) -> "ServiceTracer":
        """See `Telemetry`."""
        known = self._tracers.get(service)
        if known is None:
            known = self._tracers[service] = ServiceTracer(self, self._resource(service))
        return known

    def counts(self, service: str, read: Callable[[], Counts]) -> None:
        """See `Telemetry`."""
        self._reads[service] = read

    def start(self) -> None:
        """Begin. Needs the running event loop."""
        self._thread.start()
        self._rearm()

    def close(self) -> None:
        """Send what is left, for at most `FLUSH_S`. Blocks."""
        if self._timer is not None:
            self._timer.cancel()
        self._tell_counts()
        self._closing.set()
        self._wake.set()
        self._thread.join(FLUSH_S)
        if self._thread.is_alive():
            self._over = True
            _log.warning("telemetry_unfinished", extra={"unsent_spans": len(self._waiting) + self._under_way})
        self._spans.shutdown()
        self._counts.shutdown()

    def take(self, span: Span, tracer: "ServiceTracer") -> bool:
        """Take a span of a service in; return False if it is dropped. Never waits, never raises."""
        if self._over or len(self._waiting) >= self._waiting_max:
            return False
        self._waiting.append((span, tracer))
        if not self._wake.is_set():
            self._wake.set()
        return True

    def _resource(self, service: str) -> Resource:
        known = self._resources.get(service)
        if known is None:
            known = self._resources[service] = Resource.create(
                {
                    "service.name": self._env.get(_NAME_VARIABLE) or f"luftpause-{service}",
                    "service.namespace": "luftpause",
                    "service.version": luftpause.__version__,
                    "service.instance.id": f"{self._instance}-{service}",
                }
            )
        return known

    def _rearm(self) -> None:
        period = self._env.get(_PERIOD_VARIABLE, "")
        period_s = max(0.1, int(period) / 1000) if period.isdecimal() and len(period) < 10 else COUNTS_PERIOD_S
        self._timer = asyncio.get_running_loop().call_later(period_s, self._time_for_counts)

    def _time_for_counts(self) -> None:
        self._tell_counts()
        self._wake.set()
        self._rearm()

    def _tell_counts(self) -> None:
        """Read what is counted; what the thread has not sent yet is replaced, for the new counts hold it."""
        if not self._sends_counts:
            return
        now = time.time_ns()
        told = [Told(self._resource(name), read(), self._began_ns, now) for name, read in self._reads.items()]
        self._told = metric_data(told, self._scope)

    def _run(self) -> None:
        try:
            is_last = False
            while not is_last:
                self._wake.wait()
                is_last = self._closing.wait(GATHER_S)
                self._wake.clear()
                self._send()
        finally:
            self._over = True  # also by a fault of ours, which the thread shows as it ends

    def _send(self) -> None:
        while self._waiting and not self._over:
            batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
            spans = [span_data(span, tracer.resource, self._scope) for span, tracer in batch]
            self._under_way = len(spans)
            is_sent = self._sent(spans)
            self._under_way = 0
            if not is_sent:
                for _, tracer in batch:
                    tracer.unsent += 1
                _log.warning("spans_dropped", extra={"count": len(spans), "dropped_ever": self.dropped})
        told, self._told = self._told, None
        if told is not None and not self._over:
            try:
                self._counts.export(told)
            except OSError as error:
                _log.warning("counts_not_sent", extra={"cause": str(error)})

    def _sent(self, spans: Sequence[ReadableSpan]) -> bool:
        try:
            return self._spans.export(spans) is SpanExportResult.SUCCESS
        except OSError as error:
            _log.warning("spans_not_sent", extra={"cause": str(error)})
            return False


class ServiceTracer:
    """A `ports.tracing.Tracer`: the spans of one service.

    Attributes:
        resource: the service, as OpenTelemetry tells it.
        unsent: spans that nobody took; counted by the thread that sends.
    """

    def __init__(self, telemetry: OtlpTelemetry, resource: Resource) -> None:
        self.resource = resource
        self.unsent = 0
        self._telemetry = telemetry
        self._not_taken = 0

    @property
    def dropped(self) -> int:
        """See `Tracer`."""
        return self._not_taken + self.unsent

    def ended(self, span: Span) -> None:
        """See `Tracer`."""
        if span.at.sampled and not self._telemetry.take(span, self):
            self._not_taken += 1
