from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, StatusCode

from luftpause.adapters.otlp.span_data import TEXT_CHARS_MAX, span_data
from luftpause.core.model.traces import TraceContext
from luftpause.ports import tracing

AT = TraceContext(trace="0af7651916cd43dd8448eb211c80319c", span="b7ad6b7169203331", above="00f067aa0ba902b7")
PLAIN = tracing.Span(name="admit", at=AT, kind=tracing.SpanKind.SERVER, began_ns=5, ended_ns=7)
RESOURCE, SCOPE = Resource({}), InstrumentationScope("luftpause", "0")


def test_a_span_keeps_its_ids_and_times() -> None:
    data = span_data(PLAIN, RESOURCE, SCOPE)
    assert data.context is not None
    assert data.parent is not None
    assert (data.context.trace_id, data.context.span_id) == (int(AT.trace, 16), int(AT.span, 16))
    assert data.parent.span_id == int(AT.above, 16)
    assert (data.name, data.kind, data.start_time, data.end_time) == ("admit", SpanKind.SERVER, 5, 7)
    assert data.status.status_code is StatusCode.UNSET


def test_a_span_at_the_top_has_no_parent_and_an_error_says_so() -> None:
    top = tracing.Span(
        name="x",
        at=TraceContext(trace=AT.trace, span=AT.span),
        kind=tracing.SpanKind.CLIENT,
        began_ns=1,
        ended_ns=1,
        error="it broke",
        link=AT,
    )
    data = span_data(top, RESOURCE, SCOPE)
    assert data.parent is None
    assert (data.status.status_code, data.status.description) == (StatusCode.ERROR, "it broke")
    assert [link.context.span_id for link in data.links] == [int(AT.span, 16)]


def test_what_others_chose_is_safe_and_short() -> None:
    hostile = tracing.Span(
        name="chat \ud800\n",
        at=AT,
        kind=tracing.SpanKind.CLIENT,
        began_ns=1,
        ended_ns=1,
        attributes={"a": "x" * 10_000, "b": ("\x1b[2J",), "c": 3, "d": 0.5, "e": True},
    )
    data = span_data(hostile, RESOURCE, SCOPE)
    assert data.name == "chat \\ud800\\u000a"
    assert data.attributes == {"a": "x" * TEXT_CHARS_MAX, "b": ("\\u001b[2J",), "c": 3, "d": 0.5, "e": True}
