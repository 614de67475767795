import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.anthropic_messages.observe import MessagesStreamObserver, observe_message, text_in_message
from luftpause.core.dialects.observe import ERROR_CHARS_MAX, TOOL_CALLS_MAX, Observed
from luftpause.core.model.ids import ToolCallId, ToolName
from luftpause.core.model.turns import Usage

GOLDEN = Path(__file__).parent / "golden"


def event(kind: str, *, spaced: bool = False, **members: object) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    data = json.dumps({"type": kind, **members}, separators=separators)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def start(**usage: object) -> bytes:
    return event("message_start", message={"id": "m", "content": [], "stop_reason": None, "usage": usage})


def block(index: int, **members: object) -> bytes:
    return event("content_block_start", index=index, content_block=members)


def text(index: int, said: str) -> bytes:
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": said})


def delta(reason: str | None, **usage: object) -> bytes:
    return event("message_delta", spaced=True, delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)


STOP = event("message_stop")
TYPICAL = (
    start(input_tokens=5, cache_read_input_tokens=7, cache_creation_input_tokens=2, output_tokens=1),
    b'event: ping\ndata: {"type": "ping"}\n\n',
    text(0, 'says "message_stop" and "tool_use" and\n\n"error"'),
    block(1, type="tool_use", id="toolu_1", name="look", input={"type": "message_stop"}),
    block(2, type="tool_use", id="toolu_2", name="look", input={}),
    block(3, type="server_tool_use", id="srv"),
    delta("tool_use", output_tokens=11),
    STOP,
)
EXPECTED = Observed(
    finish="tool_use",
    usage=Usage(prompt_tokens=14, completion_tokens=11, cached_tokens=7),
    tool_calls=(ToolCallId("toolu_1"), ToolCallId("toolu_2")),
    tools=(ToolName("look"),),
)


def observed(*pieces: bytes) -> Observed:
    observer = MessagesStreamObserver()
    for piece in pieces:
        observer.feed(piece)
    return observer.observed()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_stream_tells_usage_finish_and_tool_calls_at_every_cut(end: bytes) -> None:
    whole = b"".join(TYPICAL).replace(b"\n", end)

    assert observed(whole) == EXPECTED
    for cut in range(len(whole) + 1):
        assert observed(whole[:cut], whole[cut:]) == EXPECTED, cut
    assert observed(*(whole[at : at + 1] for at in range(len(whole)))) == EXPECTED


EVENTS = st.sampled_from(
    [*TYPICAL, event("error", error={"type": "api_error", "message": "no"}), b"data: no json\n\n", b"\n"]
)


@given(st.lists(EVENTS), st.lists(st.integers(0, 100_000), max_size=12))
def test_any_chunking_equals_the_whole(events: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(events)
    points = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]

    assert observed(*(whole[begin:end] for begin, end in itertools.pairwise(points))) == observed(whole)


def test_the_end_is_seen_as_soon_as_it_is_whole() -> None:
    observer = MessagesStreamObserver()
    observer.feed(b"")
    assert not observer.first_token_seen
    observer.feed(b"".join(TYPICAL[:-1]))
    assert observer.first_token_seen
    assert not observer.done
    observer.feed(STOP[:-1])
    assert not observer.done
    observer.feed(STOP[-1:])
    assert observer.done


def test_text_that_looks_like_an_event_is_text() -> None:
    forged = '"type":"message_delta","delta":{"stop_reason":"x"},"error":{},"type":"message_stop"'

    assert observed(text(0, forged), text(0, json.dumps({"type": "error", "error": forged}))) == Observed()


def test_looking_does_not_change_what_is_seen() -> None:
    observer = MessagesStreamObserver()
    observer.feed(TYPICAL[0] + delta("end_turn", output_tokens=3)[:-2])
    first = observer.observed()

    assert first.finish == "end_turn"
    assert observer.observed() == first
    observer.feed(b"\n\n" + delta("tool_use", output_tokens=9))
    assert observer.observed().usage == Usage(prompt_tokens=14, completion_tokens=9, cached_tokens=7)
    assert first.usage == Usage(prompt_tokens=14, completion_tokens=3, cached_tokens=7)


def test_what_an_unfinished_event_seems_to_say_counts_only_if_it_ends_so() -> None:
    observer = MessagesStreamObserver()
    observer.feed(block(1, type="tool_use", id="toolu_1")[:-2])
    assert observer.observed().tool_calls == (ToolCallId("toolu_1"),)
    observer.feed(b"\ndata: and more\n\n")
    assert observer.observed().tool_calls == ()


def test_counts_are_cumulative_and_later_ones_count() -> None:
    seen = observed(start(input_tokens=0, output_tokens=0), delta("end_turn", input_tokens=40, output_tokens=2))

    assert seen == Observed(finish="end_turn", usage=Usage(prompt_tokens=40, completion_tokens=2))


def test_an_error_ends_an_answer() -> None:
    observer = MessagesStreamObserver()
    observer.feed(TYPICAL[0])
    assert not observer.done

    observer.feed(event("error", error={"type": "api_error"}))
    assert observer.done


def test_an_error_event_is_reported_and_cut() -> None:
    seen = observed(TYPICAL[0], event("error", error={"type": "api_error", "message": "x" * 1000}))

    assert seen.error.startswith('{"type":"api_error"')
    assert len(seen.error) == ERROR_CHARS_MAX


@pytest.mark.parametrize(
    "odd",
    [
        b'data: {"type":"message_start","message":{"usage":{"input_tokens":"many"}}}\n\n',
        b'data: {"type":"message_delta","delta":3}\n\n',
        b'data: {"type":"content_block_start","content_block":{"type":"tool_use","id":7}}\n\n',
        b'data: {"type":"message_start","message":' + b"[" * 60_000 + b"]" * 60_000 + b"}\n\n",
        b'data: "message_stop"\n\n',
    ],
)
def test_what_cannot_be_read_is_not_reported_and_hides_nothing(odd: bytes) -> None:
    assert observed(odd) == Observed()
    assert observed(odd, *TYPICAL, odd) == EXPECTED


def test_tool_calls_are_bounded() -> None:
    blocks = [block(at, type="tool_use", id=f"toolu_{at}") for at in range(TOOL_CALLS_MAX + 10)]

    assert len(observed(*blocks).tool_calls) == TOOL_CALLS_MAX


def test_a_whole_answer_tells_the_same() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2, "output_tokens": 11}
    content = [
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "toolu_1", "name": "look"},
        {"type": "tool_use", "id": "toolu_2"},
    ]
    body = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}

    assert observe_message(json.dumps(body).encode()) == EXPECTED


@pytest.mark.parametrize(
    "body", [b"", b"text", b"null", b"[]", b'{"type": "message"}', b'{"type": "message", "content": 3}']
)
def test_a_body_that_says_nothing_reports_nothing(body: bytes) -> None:
    assert observe_message(body) == Observed()


NATIVE = {
    "native_text": ("max_tokens", 0, 33, 12),
    "native_tool": ("tool_use", 1, 425, 29),
    "native_result": ("end_turn", 0, 477, 9),
}


@pytest.mark.parametrize("name", NATIVE)
def test_answers_of_a_real_engine(name: str) -> None:
    whole = (GOLDEN / f"{name}.sse").read_bytes()
    streamed = observed(whole)
    body = observe_message((GOLDEN / f"{name}.json").read_bytes())

    for seen in (streamed, body):
        assert seen.usage is not None
        told = (seen.finish, len(seen.tool_calls), seen.usage.prompt_tokens, seen.usage.completion_tokens)
        assert told == NATIVE[name]
    for cut in range(len(whole) + 1):
        assert observed(whole[:cut], whole[cut:]) == streamed, cut


def test_the_refusal_of_a_real_engine_is_an_error() -> None:
    assert "'messages' is required" in observe_message((GOLDEN / "native_error.json").read_bytes()).error


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"type": "message", "content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"}]}, "a"),
        ({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}, ""),
        ({"type": "content_block_start", "content_block": {"type": "tool_use", "id": "x", "input": {}}}, ""),
        ({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}, "a"),
        ({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "a"}}, ""),
        ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, ""),
        ({"content": 7}, ""),
    ],
)
def test_the_text_of_an_answer_is_that_of_its_text_blocks(document: object, text: str) -> None:
    assert text_in_message(json.dumps(document).encode()) == text
