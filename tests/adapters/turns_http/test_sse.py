"""Server-sent events cut anywhere."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.adapters.turns_http.sse import EVENT_BYTES_MAX, EventReader, EventTooLongError

STREAM = (
    b': hello\n\ndata: {"a": 1}\n\nevent: x\r\ndata:two\r\ndata: lines\r\n\r\n\n\ndata: [DONE]\n\ndata: unfinished\n'
)
EVENTS = [b'{"a": 1}', b"two\nlines", b"[DONE]"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_do_not_depend_on_where_the_bytes_are_cut(cuts: list[int]) -> None:
    reader = EventReader()
    edges = [0, *sorted(cuts), len(STREAM)]
    found = []
    for start, end in itertools.pairwise(edges):
        found += reader.feed(STREAM[start:end])
    assert found == EVENTS


def test_an_event_without_end_is_an_error() -> None:
    with pytest.raises(EventTooLongError):
        EventReader().feed(b"data: " + b"x" * EVENT_BYTES_MAX)
    reader = EventReader()
    half = b"data: " + b"x" * (EVENT_BYTES_MAX // 2 + 1) + b"\n"
    reader.feed(half)
    with pytest.raises(EventTooLongError):
        reader.feed(half)
