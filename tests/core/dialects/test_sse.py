import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.sse import EVENT_BYTES_MAX, EventCutter, data_of, split_events

LINES = st.sampled_from([b"data: one", b"data:two", b": comment", b"event: x", b"", b"data: \xc3\xa4"])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def cut_at(stream: bytes, cuts: list[int]) -> list[bytes]:
    points = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(points)]


def events_of(pieces: list[bytes]) -> tuple[list[bytes], bytes]:
    cutter = EventCutter()
    events = [event for piece in pieces for event in split_events(cutter.feed(piece))]
    return events, cutter.rest().strip(b"\n")


@given(st.lists(st.tuples(LINES, ENDS)), st.lists(st.integers(0, 10_000)), st.booleans())
def test_events_are_the_same_however_their_lines_end_and_the_stream_is_cut(
    lines: list[tuple[bytes, bytes]], cuts: list[int], marked: bool
) -> None:
    stream = b""
    for line, end in reversed(lines):
        # A CR before an LF would end the same line as the LF.
        stream = line + (b"\r\n" if end == b"\r" and stream[:1] == b"\n" else end) + stream
    mark = b"\xef\xbb\xbf" * marked

    plain = events_of([b"".join(line + b"\n" for line, _ in lines)])
    assert events_of(cut_at(mark + stream, cuts)) == plain


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_an_event_is_given_out_with_the_first_byte_that_ends_its_blank_line(end: bytes) -> None:
    cutter = EventCutter()
    stream = b"\xef\xbb\xbfdata: a" + end + b"data: b" + end + end
    whole = len(stream) - (end == b"\r\n")  # of CRLF the CR ends it
    given_out = [cutter.feed(stream[at : at + 1]) for at in range(len(stream))]

    assert [block for block in given_out if block] == [b"data: a\ndata: b\n\n"]
    assert given_out[whole - 1]


def test_a_byte_order_mark_counts_only_as_the_very_first_and_once() -> None:
    mark = b"\xef\xbb\xbf"
    for cut in range(7):
        stream = mark + mark + b"data: a\n\n" + mark + b"data: b\n\n"
        assert events_of([stream[:cut], stream[cut:]])[0] == [mark + b"data: a", mark + b"data: b"]
    assert events_of([b"\xef\xbb", b"data: a\n\n"])[0] == [b"\xef\xbbdata: a"]
    assert events_of([b"", b"\xef", b""]) == ([], b"")


def test_whole_events_are_given_out_and_the_unfinished_one_is_kept() -> None:
    cutter = EventCutter()

    assert cutter.feed(b"data: a\n\ndata: b") == b"data: a\n\n"
    assert cutter.rest() == b"data: b"
    assert cutter.feed(b"\n") == b""
    assert cutter.feed(b"\n") == b"data: b\n\n"
    assert cutter.rest() == b""


def test_an_endless_line_costs_bounded_memory_and_the_next_event_is_seen() -> None:
    cutter = EventCutter()
    for _ in range(64):
        assert cutter.feed(b"x" * (EVENT_BYTES_MAX // 8)) == b""
        assert len(cutter._rest) <= EVENT_BYTES_MAX + EVENT_BYTES_MAX // 8

    assert cutter.feed(b"x\n") == b""
    assert cutter.feed(b"\ndata: after\n\n") == b"data: after\n\n"


def test_an_overlong_event_is_left_out_however_it_is_cut() -> None:
    for size in range(EVENT_BYTES_MAX - 2, EVENT_BYTES_MAX + 6):
        stream = b"data: a\n\n" + b"x" * size + b"\r\n\r\ndata: b\n\n"
        whole = events_of([stream])
        assert (b"x" * size in whole[0]) == (size <= EVENT_BYTES_MAX)
        for cut in (9, 9 + size, 10 + size, 11 + size, 12 + size, 13 + size):
            assert events_of([stream[:cut], stream[cut:]]) == whole
            assert events_of([stream[: cut - 4], stream[cut - 4 : cut], stream[cut:]]) == whole


def test_the_data_of_an_event_is_its_data_lines_joined() -> None:
    assert data_of(b"data: one") == b"one"
    assert data_of(b"data:one") == b"one"
    assert data_of(b"event: x\ndata: one\n: comment\nid: 7\nretry: 9\ndata:  two") == b"one\n two"
    assert data_of(b": only a comment") == b""


def test_a_cutter_with_a_limit_of_its_own_says_that_it_skipped() -> None:
    cutter = EventCutter(20)
    assert cutter.feed(b"data: 1234567890\n\n") == b"data: 1234567890\n\n"
    assert not cutter.skipped
    assert cutter.feed(b"data: " + b"x" * 30) == b""
    assert cutter.skipped
    assert cutter.feed(b"\n\ndata: 1\n\n") == b"data: 1\n\n"
    assert split_events(b"data: 1234567890\n\ndata: 1\n\n", 8) == [b"data: 1"]
