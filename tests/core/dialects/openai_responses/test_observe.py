import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dialects.openai_responses.exchanges import GOLDEN, RESPONSES, Object, cut
from luftpause.core.dialects.observe import ERROR_CHARS_MAX, TOOL_CALLS_MAX, Observed
from luftpause.core.dialects.openai_responses.observe import ResponsesStreamObserver
from luftpause.core.model.ids import ToolCallId, ToolName
from luftpause.core.model.turns import Usage

USAGE = {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 3}
TURN_USAGE = Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=5)


def event(kind: str, *, spaced: bool = False, **fields: object) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    document = json.dumps({"type": kind, "sequence_number": 1, **fields}, separators=separators)
    return f"event: {kind}\ndata: {document}\n\n".encode()


def response(status: str, *output: object, **fields: object) -> Object:
    return {"id": "resp_1", "status": status, "error": None, "output": list(output), "usage": USAGE, **fields}


def function_call(call_id: str) -> Object:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": '{"call_id":"call_no"}'}


def observed(*pieces: bytes) -> Observed:
    observer = RESPONSES.observer(stream=True)
    for piece in pieces:
        observer.feed(piece)
    return observer.observed()


TYPICAL = (
    event("response.created", response=response("in_progress", usage=None)),
    event("response.output_text.delta", delta='says "call_id":"no" and "response.completed" \n\n'),
    event("response.output_item.added", item=function_call("call_1")),
    event("response.output_item.done", item=function_call("call_1"), spaced=True),
    event("response.output_item.done", item={"type": "custom_tool_call", "call_id": "call_2"}),
    event("response.completed", response=response("completed", function_call("call_1"), {"call_id": "call_3"})),
)
SEEN = Observed(
    finish="completed",
    usage=TURN_USAGE,
    tool_calls=tuple(ToolCallId(f"call_{number}") for number in (1, 2, 3)),
    tools=(ToolName("look"),),
)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_what_a_stream_says_does_not_depend_on_how_it_is_cut(newline: bytes) -> None:
    whole = b"".join(TYPICAL).replace(b"\n", newline)
    assert observed(whole) == SEEN
    for place in range(len(whole)):
        assert observed(whole[:place], whole[place:]) == SEEN
    assert observed(*[bytes([byte]) for byte in whole]) == SEEN


def test_it_is_over_with_its_last_event_and_not_before() -> None:
    observer = RESPONSES.observer(stream=True)
    assert not observer.first_token_seen
    for piece in TYPICAL[:-1]:
        observer.feed(piece)
        assert observer.first_token_seen
        assert not observer.done
    observer.feed(TYPICAL[-1][:-1])
    assert not observer.done
    observer.feed(TYPICAL[-1][-1:])
    assert observer.done


def test_calls_are_known_before_the_last_event() -> None:
    assert observed(*TYPICAL[:4]) == Observed(tool_calls=(ToolCallId("call_1"),), tools=(ToolName("look"),))


def test_a_last_event_without_its_blank_line_is_read() -> None:
    assert observed(b"".join(TYPICAL)[:-2]) == SEEN


@pytest.mark.parametrize(
    ("last", "seen"),
    [
        (
            event("response.incomplete", response=response("incomplete", incomplete_details={"reason": "x"})),
            Observed(finish="x", usage=TURN_USAGE),
        ),
        (
            event("response.incomplete", response=response("incomplete")),
            Observed(finish="incomplete", usage=TURN_USAGE),
        ),
        (
            event("response.failed", response=response("failed", error={"code": "x"})),
            Observed(usage=TURN_USAGE, error='{"code":"x"}'),
        ),
        (
            event("response.completed", response=response("completed", usage={"input_tokens": "x"})),
            Observed(finish="completed"),
        ),
        (event("response.completed", response=7), Observed()),
        (event("error", code="x"), Observed(error='{"type":"error","sequence_number":1,"code":"x"}')),
        (event("error", error={"code": "x"}, spaced=True), Observed(error='{"code": "x"}')),
        (b'data: {"error":{"message":"no"}}\n\n', Observed(error='{"message":"no"}')),
        (b"data: [DONE]\n\n: comment\n\n", Observed()),
    ],
)  # fmt: skip
def test_endings(last: bytes, seen: Observed) -> None:
    assert observed(last) == seen


@pytest.mark.parametrize("last", [event("error", code="x"), b'data: {"error":{"message":"no"}}\n\n'])
def test_an_error_ends_an_answer(last: bytes) -> None:
    observer = ResponsesStreamObserver()
    observer.feed(last)
    assert observer.done


def test_of_several_errors_the_first_counts_and_of_several_usages_the_last() -> None:
    other = {**USAGE, "input_tokens": 9}
    events = (
        event("error", error={"n": 1}),
        event("response.completed", response=response("completed", usage=other)),
        event("response.failed", response=response("failed", error={"n": 2})),
    )
    assert observed(*events) == Observed(finish="completed", usage=TURN_USAGE, error='{"n":1}')


def test_a_function_of_a_namespace_is_named_with_it() -> None:
    item = {**function_call("call_1"), "namespace": "mcp__wiki"}
    assert observed(event("response.output_item.done", item=item)).tools == ("mcp__wiki__look",)


def test_bounds() -> None:
    events = [event("response.output_item.done", item=function_call(f"call_{n}")) for n in range(TOOL_CALLS_MAX + 3)]
    assert len(observed(*events).tool_calls) == TOOL_CALLS_MAX
    assert len(observed(event("error", message="x" * 2 * ERROR_CHARS_MAX)).error) == ERROR_CHARS_MAX


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        (
            response("completed", function_call("call_1")),
            Observed(
                finish="completed", usage=TURN_USAGE, tool_calls=(ToolCallId("call_1"),), tools=(ToolName("look"),)
            ),
        ),
        (response("failed", error={"message": "m"}), Observed(usage=TURN_USAGE, error='{"message": "m"}')),
        ({"error": {"message": "m"}}, Observed(error='{"message": "m"}')),
        ({"status": 7}, Observed()),
        ([], Observed()),
    ],
)  # fmt: skip
def test_whole_answers(body: object, seen: Observed) -> None:
    text = json.dumps(body).encode()
    observer = RESPONSES.observer(stream=False)
    observer.feed(text[:7])
    observer.feed(text[7:])
    assert observer.observed() == seen


@given(st.lists(st.sampled_from([*TYPICAL, b"data: {\n\n", b": x\n\n", b"data: \xff\n\n"]), max_size=8), st.randoms())
def test_cuts_change_nothing(events: list[bytes], chance: random.Random) -> None:
    whole = b"".join(events)
    places = [chance.randrange(len(whole) + 1) for _ in range(6)]
    assert observed(*cut(whole, places)) == observed(whole)


NATIVE = sorted(path.name for path in GOLDEN.glob("native_*.answer.*"))


@pytest.mark.parametrize("name", NATIVE)
def test_answers_of_a_real_engine(name: str) -> None:
    body = (GOLDEN / name).read_bytes()
    stream = name.endswith(".sse")
    expected = json.loads((GOLDEN / f"{name.split('.')[0]}.seen.json").read_text())
    for place in [*range(0, len(body), 1 if len(body) < 4000 else 97), len(body)]:
        observer = RESPONSES.observer(stream=stream)
        observer.feed(body[:place])
        observer.feed(body[place:])
        seen = observer.observed()
        usage = seen.usage
        assert usage is not None
        assert {
            "finish": seen.finish,
            "usage": [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens],
            "calls": list(seen.tool_calls),
            "error": seen.error,
        } == expected
        assert observer.done == stream


TEXTS = [{"type": "output_text", "text": text} for text in "ab"]
PARTS = [TEXTS[0], {"type": "refusal", "refusal": "no"}, TEXTS[1]]
SAID = {"type": "message", "content": PARTS}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"object": "response", "output": [{"type": "reasoning", "content": PARTS}, SAID]}, "ab"),
        ({"type": "response.output_text.delta", "delta": "a"}, "a"),
        ({"type": "response.reasoning_text.delta", "delta": "a"}, ""),
        ({"type": "response.completed", "response": {"output": [SAID]}}, ""),
        ({"output": 7}, ""),
    ],
)
def test_the_text_of_an_answer_is_that_of_its_messages(document: object, text: str) -> None:
    assert RESPONSES.text_in(json.dumps(document).encode()) == text
