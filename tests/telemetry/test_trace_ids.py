from luftpause.core.model.traces import TraceContext, context_in
from luftpause.telemetry.trace_ids import begun_under, fresh_span

ABOVE = TraceContext(trace="0af7651916cd43dd8448eb211c80319c", span="b7ad6b7169203331", sampled=False)


def test_what_begins_under_something_is_its_child() -> None:
    below = begun_under(ABOVE)
    assert (below.trace, below.above, below.sampled) == (ABOVE.trace, ABOVE.span, False)
    assert below.span != ABOVE.span


def test_what_begins_under_nothing_begins_a_trace() -> None:
    first, second = begun_under(None), begun_under(None)
    assert first.trace != second.trace
    assert (first.above, first.sampled) == ("", True)
    assert context_in(first.header) is not None


def test_no_two_spans_are_called_alike() -> None:
    assert len({fresh_span() for _ in range(100)}) == 100
