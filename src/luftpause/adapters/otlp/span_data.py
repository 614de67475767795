"""A span of ours as OpenTelemetry's exporter takes it. What clients chose is made safe and cut."""

from collections.abc import Mapping
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from luftpause.core.model.traces import TraceContext
from luftpause.ports import tracing
from luftpause.telemetry.printable import printable

TEXT_CHARS_MAX: Final = 512
"""Of a name, an attribute or an error."""

_KINDS: Final = {
    tracing.SpanKind.INTERNAL: SpanKind.INTERNAL,
    tracing.SpanKind.SERVER: SpanKind.SERVER,
    tracing.SpanKind.CLIENT: SpanKind.CLIENT,
}
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


def span_data(span: tracing.Span, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    """Return a span as the exporter takes it.

    Its ids are ours: a run's follow from the run, in whichever process it ends.
    """
    at = span.at
    above = at.above and _context(TraceContext(trace=at.trace, span=at.above))
    return ReadableSpan(
        name=_cut(span.name),
        context=_context(at),
        parent=above or None,
        resource=resource,
        attributes=_attributes(span.attributes),
        links=() if span.link is None else (Link(_context(span.link)),),
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR, _cut(span.error)) if span.error else Status(),
        start_time=span.began_ns,
        end_time=span.ended_ns,
        instrumentation_scope=scope,
    )


def _context(at: TraceContext) -> SpanContext:
    return SpanContext(int(at.trace, 16), int(at.span, 16), is_remote=True, trace_flags=_SAMPLED)


def _attributes(attributes: Mapping[str, tracing.Attribute]) -> dict[str, tracing.Attribute]:
    return {name: _bounded(value) for name, value in attributes.items()}


def _bounded(value: tracing.Attribute) -> tracing.Attribute:
    if isinstance(value, str):
        return _cut(value)
    return tuple(map(_cut, value)) if isinstance(value, tuple) else value


def _cut(text: str) -> str:
    return printable(text[:TEXT_CHARS_MAX])
