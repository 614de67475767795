import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.observe import (
    BODY_BYTES_MAX,
    ERROR_CHARS_MAX,
    TOOL_CALLS_MAX,
    BodyObserver,
    Observed,
    StreamObserver,
    observe_body,
)
from luftpause.core.dialects.sse import EVENT_BYTES_MAX
from luftpause.core.model.ids import ToolCallId, ToolName
from luftpause.core.model.tool_names import TOOL_CHARS_MAX, TOOLS_MAX
from luftpause.core.model.turns import Usage

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}


def chunk(*, spaced: bool = False, **fields: object) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    return json.dumps({"id": "c", "choices": [], **fields}, separators=separators).encode()


def choice(*, index: int = 0, finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"index": index, "delta": delta, "finish_reason": finish}


def call(name: str | None, index: int = 0) -> dict[str, object]:
    return {"index": index, "id": name, "type": "function", "function": {"name": "look", "arguments": ""}}


def stream(*documents: bytes, end: bytes = b"\n") -> bytes:
    return b"".join(b"data: " + document + end + end for document in (*documents, b"[DONE]"))


def observed(*pieces: bytes) -> Observed:
    observer = StreamObserver()
    for piece in pieces:
        observer.feed(piece)
    return observer.observed()


TYPICAL = (
    chunk(choices=[choice(role="assistant")], usage=None),
    chunk(choices=[choice(content='says "usage":{ and \n\n "finish_reason":"stop"')], usage=None),
    chunk(choices=[choice(tool_calls=[call("call_1"), call("call_2", 1)])], spaced=True),
    chunk(choices=[choice(index=1, tool_calls=[call("call_3")])]),
    chunk(choices=[choice(tool_calls=[call(None)])]),
    chunk(choices=[choice(finish="tool_calls")], spaced=True),
    chunk(usage=USAGE),
)
EXPECTED = Observed(
    finish="tool_calls",
    usage=Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=5),
    tool_calls=(ToolCallId("call_1"), ToolCallId("call_2"), ToolCallId("call_3")),
    tools=(ToolName("look"),),
)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_stream_tells_usage_finish_and_the_tool_calls_of_all_choices(end: bytes) -> None:
    assert observed(stream(*TYPICAL, end=end)) == EXPECTED


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_every_cut_in_two_tells_the_same(end: bytes) -> None:
    whole = stream(*TYPICAL, end=end)

    for cut in range(len(whole) + 1):
        assert observed(whole[:cut], whole[cut:]) == EXPECTED, cut


def test_byte_by_byte_tells_the_same() -> None:
    whole = stream(*TYPICAL)

    assert observed(*(whole[at : at + 1] for at in range(len(whole)))) == EXPECTED


DOCUMENTS = st.sampled_from([*TYPICAL, b'{"error": {"message": "out of memory"}}', b"no json \xff", b"[]", b""])


@given(
    st.lists(st.tuples(DOCUMENTS, st.sampled_from([b"\n\n", b"\r\n\r\n", b"\n", b"\r\n"]))),
    st.lists(st.integers(0, 100_000), max_size=12),
)
def test_any_chunking_equals_the_whole(documents: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    whole = b"".join(b"data: " + document + end for document, end in documents)
    points = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in itertools.pairwise(points)]

    assert observed(*pieces) == observed(whole)


def test_text_that_looks_like_a_marker_is_text() -> None:
    text = '"usage":{"prompt_tokens":1},"finish_reason":"stop","tool_calls":[{"id":"x"}],"error":"no"'

    assert observed(stream(chunk(choices=[choice(content=text)]))) == Observed()


def test_an_event_of_several_data_lines_is_one_document() -> None:
    lines = json.dumps({"choices": [choice(finish="stop")], "usage": USAGE}, indent=1).encode().split(b"\n")

    seen = observed(b"event: message\n" + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n")

    assert seen == Observed(finish="stop", usage=EXPECTED.usage)


def test_a_last_event_without_its_blank_line_counts() -> None:
    assert observed(b"data: " + chunk(usage=USAGE)).usage == EXPECTED.usage


def test_an_error_event_is_reported_and_cut() -> None:
    seen = observed(stream(chunk(choices=[choice(content="a")]), b'{"error": {"message": "%b"}}' % (b"x" * 1000)))

    assert seen.error.startswith('{"message": "x')
    assert len(seen.error) == ERROR_CHARS_MAX
    assert seen.finish == ""


@pytest.mark.parametrize("error", [b'{"message":"no"}', b'"no"', b"[1]"])
def test_an_error_ends_an_answer(error: bytes) -> None:
    observer = StreamObserver()
    observer.feed(b"data: %b\n\n" % chunk(choices=[choice(content="a")]))
    assert not observer.done

    observer.feed(b'data: {"error":%b}\n\n' % error)
    assert observer.done


@pytest.mark.parametrize("nothing", [b"null", b'""', b"{}", b"[]", b"false", b"0"])
def test_an_error_member_that_tells_of_none_ends_nothing(nothing: bytes) -> None:
    observer = StreamObserver()
    observer.feed(b'data: {"choices":[],"error":%b}\n\n' % nothing)

    assert (observer.done, observer.observed().error) == (False, "")


def test_the_last_usage_and_the_first_finish_win() -> None:
    first, last = {"prompt_tokens": 7}, {"prompt_tokens": 7, "completion_tokens": 9, "prompt_tokens_details": None}

    seen = observed(
        stream(
            chunk(choices=[choice(finish="length")], usage=first), chunk(choices=[choice(finish="stop")], usage=last)
        )
    )

    assert seen == Observed(finish="length", usage=Usage(prompt_tokens=7, completion_tokens=9))


@pytest.mark.parametrize(
    "document",
    [
        b'{"usage": {"prompt_tokens": "many"}, "choices": [{"finish_reason":"stop"}]}',
        b'{"usage": {}, "choices": [{"finish_reason":"stop"}]}',
    ],
)
def test_an_unreadable_usage_hides_nothing_else(document: bytes) -> None:
    assert observed(stream(document)) == Observed(finish="stop")


@pytest.mark.parametrize(
    "document", [b'{"usage": {', b'{"choices": 1, "usage": {"a":1}}', b'"usage": {' * 9, b'{"error":']
)
def test_what_cannot_be_read_is_not_reported(document: bytes) -> None:
    assert observed(stream(document)) == Observed()


def test_deep_nesting_is_not_reported() -> None:
    deep = b'{"usage": {"x":' + b"[" * 60_000 + b"]" * 60_000 + b"}}"

    assert observed(stream(deep)) == Observed()


def test_the_end_is_seen_as_soon_as_it_is_whole() -> None:
    observer = StreamObserver()
    observer.feed(b'data: {"choices":[{"delta":{"content":"[DONE]"}}]}\n\n')
    assert not observer.done
    observer.feed(b"data: [DO")
    assert not observer.done
    observer.feed(b"NE]\n\n")
    assert observer.done


def test_the_first_byte_counts_as_first_token() -> None:
    observer = StreamObserver()
    observer.feed(b"")
    assert not observer.first_token_seen
    observer.feed(b"d")
    assert observer.first_token_seen


def test_an_endless_line_is_skipped_and_later_events_count() -> None:
    pieces = [b"x" * 10_000] * (EVENT_BYTES_MAX // 10_000 + 2)

    assert observed(b"data: ", *pieces, b"\n\n", stream(*TYPICAL)) == EXPECTED


def test_tool_call_ids_are_bounded() -> None:
    calls = [call(f"call_{at}", at) for at in range(TOOL_CALLS_MAX + 10)]

    assert len(observed(stream(chunk(choices=[choice(tool_calls=calls)]))).tool_calls) == TOOL_CALLS_MAX


def piece(name: object, at: object = 0, call_id: str | None = None, arguments: str = "") -> dict[str, object]:
    return {"index": at, "id": call_id, "function": {"name": name, "arguments": arguments}}


def names(*pieces: dict[str, object], index: int = 0) -> list[str]:
    return list(observed(stream(*(chunk(choices=[choice(index=index, tool_calls=[each])]) for each in pieces))).tools)


def test_tools_are_named_in_order_and_once() -> None:
    assert names(piece("b", 0, "c0"), piece("a", 1, "c1"), piece("b", 2, "c2")) == ["b", "a"]


def test_a_name_may_come_in_pieces_and_may_be_said_again() -> None:
    assert names(piece("mcp__wi", 0, "c0"), piece("ki__", 0), piece("search", 0)) == ["mcp__wiki__search"]
    assert names(piece("look", 0, "c0"), piece("look", 0, "c0"), piece("look", 0)) == ["look"]
    assert names(piece("wa", 0, "c0"), piece("ta", 1, "c1"), piece("it", 0), piece("lk", 1)) == ["wait", "talk"]


def test_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    assert names(piece("a", 0, "c0"), piece("b", 0, "c1")) == ["a", "b"]
    assert names(piece("a", None, "c0"), piece("b", "first", "c1")) == ["a", "b"]


def test_names_of_two_choices_are_not_put_together() -> None:
    both = [choice(index=0, tool_calls=[piece("a")]), choice(index=1, tool_calls=[piece("b")])]
    assert observed(stream(chunk(choices=both))).tools == ("a", "b")


@pytest.mark.parametrize("name", [None, ""])
def test_a_call_without_a_name_is_a_call(name: object) -> None:
    seen = observed(stream(chunk(choices=[choice(tool_calls=[piece(name, 0, "c0")])])))
    assert (seen.tool_calls, seen.tools) == (("c0",), ())


def test_a_name_in_arguments_is_none() -> None:
    assert names(piece("a", 0, "c0"), piece(None, 0, None, '{"name": "evil", "tool_calls":[{"name":"b"}]}')) == ["a"]


def test_names_are_bounded() -> None:
    many = [piece(f"tool-{at}", at, f"c{at}") for at in range(TOOL_CALLS_MAX + 10)]
    assert names(*many) == [f"tool-{at}" for at in range(TOOLS_MAX)]
    assert names(piece("x" * 100, 0, "c"), piece("y" * 100, 0)) == ["x" * 100 + "y" * (TOOL_CHARS_MAX - 100)]
    assert names(piece("x" * 1000, 0, "c")) == ["x" * TOOL_CHARS_MAX]


def test_a_whole_answer_tells_the_same() -> None:
    body = json.dumps(
        {
            "choices": [
                {"message": {"tool_calls": [call("call_1"), call("call_2")]}, "finish_reason": "tool_calls"},
                {"message": {"tool_calls": [call("call_3")]}, "finish_reason": "tool_calls"},
            ],
            "usage": USAGE,
        }
    ).encode()

    assert observe_body(body) == EXPECTED
    observer = BodyObserver()
    observer.feed(b"")
    assert not observer.first_token_seen
    for at in range(0, len(body), 7):
        observer.feed(body[at : at + 7])
    assert observer.first_token_seen
    assert observer.observed() == EXPECTED


@pytest.mark.parametrize("body", [b"", b"plain text", b"null", b"[1]", b'{"choices": null, "usage": null}'])
def test_a_body_that_says_nothing_reports_nothing(body: bytes) -> None:
    assert observe_body(body) == Observed()


def test_an_overlong_answer_is_not_kept() -> None:
    observer = BodyObserver()
    observer.feed(b" " * (BODY_BYTES_MAX - 10))
    observer.feed(chunk(usage=USAGE))
    observer.feed(chunk(usage=USAGE))

    assert observer.observed() == Observed()
