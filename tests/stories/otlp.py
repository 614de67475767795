"""Ends of the wire that traces go to or through: a receiver of OTLP over HTTP, and a relay that keeps headers."""

import gzip
import http.client
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

HOP_BY_HOP = ("connection", "content-length", "transfer-encoding", "host", "keep-alive")


@dataclass(frozen=True)
class Seen:
    """A span as it arrived; ids are hex, `parent` is empty for none."""

    service: str
    name: str
    kind: int
    trace: str
    span: str
    parent: str
    attributes: dict[str, Any]
    error: str
    links: tuple[str, ...]
    began: int
    ended: int


@dataclass
class Receiver:
    """What arrived at a collector, and where it listens. `status` is what it answers."""

    url: str
    status: int = 200
    spans: list[Seen] = field(default_factory=list)
    metrics: dict[str, set[str]] = field(default_factory=dict)

    def named(self, name: str) -> list[Seen]:
        """All spans whose name begins so, the oldest first."""
        return sorted((each for each in list(self.spans) if each.name.startswith(name)), key=lambda each: each.began)

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            self._take_spans(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self._take_metrics(ExportMetricsServiceRequest.FromString(body))

    def _take_spans(self, request: ExportTraceServiceRequest) -> None:
        for of_resource in request.resource_spans:
            service = values(of_resource.resource.attributes)["service.name"]
            for of_scope in of_resource.scope_spans:
                self.spans += [
                    Seen(
                        service=service,
                        name=span.name,
                        kind=span.kind,
                        trace=span.trace_id.hex(),
                        span=span.span_id.hex(),
                        parent=span.parent_span_id.hex(),
                        attributes=values(span.attributes),
                        error=span.status.message,
                        links=tuple(link.span_id.hex() for link in span.links),
                        began=span.start_time_unix_nano,
                        ended=span.end_time_unix_nano,
                    )
                    for span in of_scope.spans
                ]

    def _take_metrics(self, request: ExportMetricsServiceRequest) -> None:
        for of_resource in request.resource_metrics:
            names = self.metrics.setdefault(values(of_resource.resource.attributes)["service.name"], set())
            for of_scope in of_resource.scope_metrics:
                names.update(metric.name for metric in of_scope.metrics)


def values(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    """Return attributes as plain values."""
    found: dict[str, Any] = {}
    for each in attributes:
        kind = each.value.WhichOneof("value") or "string_value"
        value: Any = getattr(each.value, kind)
        found[each.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return found


@contextmanager
def receiver(status: int = 200) -> Iterator[Receiver]:
    """A collector for the length of a block."""

    class Handler(Quiet):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if found.status == 200:
                found.take(self.path, body)
            self.send_response(found.status)
            self.send_header("content-length", "0")
            self.end_headers()

    with _serving(Handler) as port:
        found = Receiver(f"http://127.0.0.1:{port}", status)
        yield found


@dataclass
class Relay:
    """Passes POSTs on, and keeps their `traceparent` headers and bodies."""

    url: str
    traces: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def relay(target: str) -> Iterator[Relay]:
    """A relay to a server at `http://host:port` for the length of a block. What is no POST and no health is a 405."""
    address = target.removeprefix("http://")

    class Handler(Quiet):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.traces.append(self.headers.get("traceparent", ""))
            found.bodies.append(body)
            self._pass_on(body)

        def do_GET(self) -> None:
            if self.path == "/mcp":
                self._refuse()
            else:
                self._pass_on(None)

        def do_DELETE(self) -> None:
            self._refuse()

        def _refuse(self) -> None:
            self.send_response(405)
            self.send_header("content-length", "0")
            self.end_headers()

        def _pass_on(self, body: bytes | None) -> None:
            connection = http.client.HTTPConnection(address, timeout=60)
            try:
                headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
                connection.request(self.command, self.path, body, {**headers, "host": address})
                answer = connection.getresponse()
                whole = answer.read()
            finally:
                connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole)

    with _serving(Handler) as port:
        found = Relay(f"http://127.0.0.1:{port}")
        yield found


class Quiet(BaseHTTPRequestHandler):
    """A handler that keeps connections and writes no log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        return

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            return  # who asked has left


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(5)
