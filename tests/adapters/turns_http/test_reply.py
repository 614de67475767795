import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.turns_http.scripted_door import SAYS_HELLO, call_piece, delta, events
from luftpause.adapters.turns_http.reply import (
    CALLS_MAX,
    CHARS_MAX,
    BrokenReplyError,
    EmptyReplyError,
    ReplyAssembler,
    error_text,
)
from luftpause.adapters.turns_http.sse import EVENT_BYTES_MAX, EventReader, EventTooLongError
from luftpause.core.model.turns import Usage
from luftpause.core.runs.messages import ToolCall
from luftpause.ports.turns import TurnReply


def assembled(*pieces: bytes) -> TurnReply:
    reader, assembler = EventReader(), ReplyAssembler()
    for piece in pieces:
        for data in reader.feed(piece):
            assembler.take(data)
    return assembler.finished()


def calls_of(*chunks: object) -> list[tuple[str, str, str]]:
    calls: tuple[ToolCall, ...] = assembled(events(*chunks, delta(finish="tool_calls"))).message.tool_calls
    return [(call.call, call.tool, call.arguments) for call in calls]


WITH_CALLS = (
    *SAYS_HELLO[:2],
    call_piece(index=0, id="c1", name="look", arguments=""),
    call_piece(index=0, arguments='{"at":'),
    call_piece(index=0, arguments='"moon"}'),
    call_piece(index=1, id="c2", name="look", arguments="{}"),
    delta(finish="tool_calls"),
)


@given(st.lists(st.integers(0, 1500), max_size=12), st.booleans())
def test_the_reply_does_not_depend_on_where_the_bytes_are_cut(cuts: list[int], with_returns: bool) -> None:
    raw = b": ping\n\n" + events(*WITH_CALLS)
    raw = raw.replace(b"\n", b"\r\n") if with_returns else raw
    edges = sorted({min(cut, len(raw)) for cut in cuts} | {0, len(raw)})
    pieces = [raw[start:end] for start, end in itertools.pairwise(edges)]
    assert assembled(*pieces) == assembled(events(*WITH_CALLS))


def test_parallel_calls_in_pieces_are_told_apart_by_their_index() -> None:
    assert calls_of(
        call_piece(index=0, id="c1", name="look", arguments='{"a"'),
        call_piece(index=1, id="c2", name="ask", arguments='{"b"'),
        call_piece(index=0, arguments=":1}"),
        call_piece(index=1, arguments=":2}"),
    ) == [("c1", "look", '{"a":1}'), ("c2", "ask", '{"b":2}')]


def test_whole_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    assert calls_of(
        call_piece(index=0, id="c1", name="look", arguments="{}"),
        call_piece(index=0, id="c2", name="look", arguments="{}"),
    ) == [("c1", "look", "{}"), ("c2", "look", "{}")]


def test_pieces_that_repeat_name_and_id_are_one_call_until_its_arguments_are_whole() -> None:
    same = {"index": 0, "id": "c1", "name": "look"}
    pieces = ("", '{"at":', '{"x":1}', "}", "{}")
    (first, second) = calls_of(*(call_piece(**same, arguments=piece) for piece in pieces))
    assert first == ("c1", "look", '{"at":{"x":1}}')
    assert second[1:] == ("look", "{}")


def test_arguments_that_are_an_object_are_taken_as_its_text() -> None:
    piece = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": {"at": "moon", "far": [1, {}]}}}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}
    assert calls_of(chunk) == [("c1", "look", '{"at":"moon","far":[1,{}]}')]


def test_what_is_said_in_parts_is_their_text_without_thoughts() -> None:
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thoughts, {"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}, {"type": "image", "text": 5}]
    chunk = {"choices": [{"index": 0, "delta": {"content": parts}, "finish_reason": "stop"}]}
    assert assembled(events(chunk)).message.text == "Hello"


def test_a_reply_of_nothing_is_no_reply_but_blanks_before_a_call_are() -> None:
    for nothing in ((), (delta(content=" \n"),)):
        with pytest.raises(EmptyReplyError, match="finish reason stop"):
            assembled(events(*nothing, delta(finish="stop")))
    assert len(calls_of(delta(content=" "), call_piece(index=0, id="c1", name="look", arguments="{}"))) == 1


def test_calls_that_nobody_offered_are_no_answer_but_text_beside_them_is() -> None:
    assembler = ReplyAssembler()
    assembler.take(msgspec.json.encode(call_piece(index=0, id="c1", name="look", arguments="{}")))
    assembler.take(msgspec.json.encode(delta(finish="tool_calls")))
    assert len(assembler.finished().message.tool_calls) == 1
    with pytest.raises(EmptyReplyError, match="none are offered"):
        assembler.finished(may_call=False)
    assembler.take(msgspec.json.encode(delta(content="seven")))
    assert assembler.finished(may_call=False).message.text == "seven"


NO_COUNTS: tuple[object, ...] = (-1, 2**53 + 1, 10**400, "many", None, True, [], 1e300)


@pytest.mark.parametrize("count", NO_COUNTS, ids=repr)
def test_a_count_that_is_none_says_nothing_and_costs_no_turn(count: object) -> None:
    told = {"prompt_tokens": count, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": count}}
    reply = assembled(events(*SAYS_HELLO[:-1], {"choices": [], "usage": told}, delta(finish="stop")))
    assert reply.usage == Usage(prompt_tokens=0, completion_tokens=3, cached_tokens=None)


@pytest.mark.parametrize("told", ["much", [1], 5, {"prompt_tokens_details": 5}, {}], ids=repr)
def test_a_usage_of_another_shape_costs_no_turn(told: object) -> None:
    reply = assembled(events(delta(content="hi"), {"choices": [], "usage": told}, delta(finish="stop")))
    assert reply.message.text == "hi"
    assert reply.usage in (None, Usage(prompt_tokens=0, completion_tokens=0))


def test_a_count_with_a_fraction_of_nothing_is_a_count() -> None:
    told = {"prompt_tokens": 7.0, "completion_tokens": 2**53}
    reply = assembled(events(delta(content="hi"), {"choices": [], "usage": told}, delta(finish="stop")))
    assert reply.usage == Usage(prompt_tokens=7, completion_tokens=2**53)


def test_half_an_emoji_is_shown_as_such_and_costs_no_turn() -> None:
    half = rb'data: {"choices":[{"delta":{"content":"a\ud83db \\ud83d"}}]}' + b"\n\n"
    reply = assembled(half, events(delta(finish="stop")))
    assert reply.message.text == "a\ufffdb \\ud83d"


def test_a_chunk_nested_beyond_parsing_is_an_error() -> None:
    with pytest.raises(BrokenReplyError, match="no chunk"):
        assembled(b'data: {"error":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n\n")


def test_calls_without_an_index_begin_with_a_name() -> None:
    assert calls_of(
        call_piece(id="c1", name="look", arguments='{"a"'),
        call_piece(arguments=":1}"),
        call_piece(id="c2", name="look", arguments="{}"),
    ) == [("c1", "look", '{"a":1}'), ("c2", "look", "{}")]


def test_calls_without_an_id_or_with_a_taken_one_get_their_own() -> None:
    got = calls_of(
        call_piece(index=0, name="look", arguments="{}"),
        call_piece(index=1, id="call_0", name="look", arguments="{}"),
        call_piece(index=2, id="call_0", name="look", arguments="{}"),
    )
    ids = [call for call, _, _ in got]
    assert ids[1] == "call_0"
    assert len(set(ids)) == 3
    assert all(len(call) > 20 for call in (ids[0], ids[2]))


def test_an_engine_may_forget_done_but_not_how_it_finished() -> None:
    whole = events(*SAYS_HELLO)
    assert assembled(whole.removesuffix(b"data: [DONE]\n\n")).finish == "stop"
    with pytest.raises(BrokenReplyError):
        assembled(events(*SAYS_HELLO[:3]).removesuffix(b"data: [DONE]\n\n"))


def test_only_the_first_choice_counts() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    assert assembled(events(*SAYS_HELLO, other)) == assembled(events(*SAYS_HELLO))


def test_an_endless_event_is_an_error() -> None:
    with pytest.raises(EventTooLongError):
        EventReader().feed(b"data: " + b"x" * (EVENT_BYTES_MAX + 1))


@pytest.mark.parametrize(
    ("body", "said"),
    [(b'{"error":{"message":"no"}}', "no"), (b"<h1>Bad</h1>", "<h1>Bad</h1>"), (b"\xff", "�"), (b"x" * 900, "x" * 500)],
)
def test_an_error_body_is_told_whatever_its_shape(body: bytes, said: str) -> None:
    assert error_text(body) == said


def test_a_reply_without_end_counts_as_cut() -> None:
    assembler = ReplyAssembler()
    chunk = msgspec.json.encode(delta(content="x" * 999))
    taken = 0
    while not assembler.is_full:
        assembler.take(chunk)
        taken += 1
    assert taken == -(-CHARS_MAX // 999)
    assert assembler.finished().finish == "length"


def test_calls_without_end_count_as_cut_and_the_first_of_them_are_kept() -> None:
    assembler = ReplyAssembler()
    for index in itertools.count():
        assembler.take(msgspec.json.encode(call_piece(index=index, id=f"c{index}", name="look", arguments="{}")))
        if assembler.is_full:
            break
    reply = assembler.finished()
    assert (len(reply.message.tool_calls), reply.finish) == (CALLS_MAX, "length")


def test_arguments_without_end_count_as_well() -> None:
    assembler = ReplyAssembler()
    assembler.take(msgspec.json.encode(call_piece(index=0, id="c", name="look", arguments="x" * CHARS_MAX)))
    assert assembler.is_full
