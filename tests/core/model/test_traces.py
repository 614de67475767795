import pytest

from luftpause.core.model.traces import TRACEPARENT_CHARS_MAX, TraceContext, context_in, span_of, trace_of

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01-what-later-versions-say", True),
    ],
)
def test_a_header_says_where_its_sender_stands(header: str, sampled: bool) -> None:
    assert context_in(header) == TraceContext(trace=TRACE, span=SPAN, sampled=sampled)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00-1-2-03",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"cc-{TRACE}-{SPAN}-01-" + "x" * TRACEPARENT_CHARS_MAX,
    ],
)
def test_a_header_that_says_nothing_sound_says_nothing(header: str) -> None:
    assert context_in(header) is None


@pytest.mark.parametrize("sampled", [True, False])
def test_a_child_stands_in_its_parent_s_trace_and_its_header_comes_back(sampled: bool) -> None:
    child = TraceContext(trace=TRACE, span=SPAN, sampled=sampled).below("00f067aa0ba902b7")
    assert child == TraceContext(trace=TRACE, span="00f067aa0ba902b7", above=SPAN, sampled=sampled)
    assert context_in(child.header) == TraceContext(trace=TRACE, span="00f067aa0ba902b7", sampled=sampled)


def test_ids_that_belong_to_a_name_stay_the_same() -> None:
    assert (trace_of("run_1"), span_of("run_1")) == (trace_of("run_1"), span_of("run_1"))
    assert len({trace_of("run_1"), trace_of("run_2"), span_of("run_1"), span_of("run_2")}) == 4
    assert context_in(f"00-{trace_of('run_1')}-{span_of('run_1')}-01") is not None
