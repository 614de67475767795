import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dialects.gemini.exchanges import ARRAY, EVENTS, chunk, tool_call, translated, written
from core.dialects.gemini.legal import Told, told_by, told_by_array, told_by_events
from luftpause.core.dialects.chat_answer import ANSWER_BYTES_MAX
from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.gemini.from_chat import BLANK, PIECES_PER_BLANK

USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 7}}
DONE = b"data: [DONE]\n\n"
THINKS = written(generationConfig={"thinkingConfig": {"includeThoughts": True}})


def told(*events: bytes, request: bytes = b"") -> Told:
    return told_by_events(translated([b"".join(events)], request))


def test_a_stream_of_everything() -> None:
    seen = told(
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "I "}),
        chunk({"content": "look"}),
        tool_call(0, call_id="a", name="look", arguments='{"x":'),
        tool_call(1, call_id="b", name="see", arguments="{}"),
        tool_call(0, arguments="1}"),
        chunk(finish="tool_calls"),
        chunk(usage=USAGE),
        DONE,
        request=THINKS,
    )
    assert (seen.text, seen.thoughts, seen.finish) == ("I look", "hm", "STOP")
    assert seen.calls == [("a", "look", {"x": 1}), ("b", "see", {})]
    assert seen.usage == {
        "promptTokenCount": 9,
        "cachedContentTokenCount": 7,
        "candidatesTokenCount": 4,
        "totalTokenCount": 13,
    }


def test_tokens_of_thoughts_stand_beside_those_of_the_answer() -> None:
    usage = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 3}}
    counts = told(chunk({"content": "x"}), chunk(finish="stop"), chunk(usage=usage), DONE).usage
    assert counts is not None
    assert (counts["thoughtsTokenCount"], counts["candidatesTokenCount"], counts["totalTokenCount"]) == (3, 1, 13)


def test_thoughts_that_nobody_wants_to_read_show_that_the_model_lives() -> None:
    events = [chunk({"reasoning_content": "hm"}) for _ in range(2 * PIECES_PER_BLANK)]
    answer = translated([*events, chunk({"content": "x"}), chunk(finish="stop")])
    assert answer.startswith(2 * BLANK + b"data: ")
    assert told_by_events(answer).thoughts == ""


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", "STOP"), ("length", "MAX_TOKENS"), ("content_filter", "SAFETY"), ("tool_calls", "STOP"), ("eos", "STOP")],
)
def test_why_the_model_stopped(reason: str, finish: str) -> None:
    assert told(chunk({"content": "x"}), chunk(finish=reason)).finish == finish


def test_a_call_that_is_no_json_is_told_as_malformed_and_none_is_made() -> None:
    bad = tool_call(1, call_id="b", name="bad", arguments='{"x')
    good = tool_call(0, call_id="a", name="ok", arguments="{}")
    answer = translated([good, bad, chunk(finish="tool_calls")])
    (document,) = [json.loads(event.removeprefix(b"data: ")) for event in answer.split(b"\n\n")[:-1]]
    seen = told_by([document])
    assert (seen.calls, seen.finish) == ([], "MALFORMED_FUNCTION_CALL")
    assert document["candidates"][0]["finishMessage"] == 'Malformed function call: bad({"x)'


def test_a_call_that_was_cut_is_not_made() -> None:
    seen = told(tool_call(0, call_id="a", name="look", arguments='{"x'), chunk(finish="length"))
    assert (seen.calls, seen.finish) == ([], "MAX_TOKENS")


def test_a_call_without_an_id_gets_one() -> None:
    seen = told(tool_call(0, name="look"), tool_call(1, name="see"), chunk(finish="tool_calls"))
    ids = [call[0] for call in seen.calls]
    assert len(set(ids)) == 2
    assert all(each.startswith("call_") for each in ids)


def test_an_id_that_the_engine_gives_twice_is_given_once() -> None:
    calls = (tool_call(0, call_id="a", name="look"), tool_call(1, call_id="a", name="see"))
    first, second = [call[0] for call in told(*calls, chunk(finish="tool_calls")).calls]
    assert (first, second != "a") == ("a", True)


def test_an_engine_that_names_no_model_and_counts_no_tokens() -> None:
    answer = json.loads(translated([b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'], stream=False))
    assert (answer["modelVersion"], "usageMetadata" in answer) == ("m", False)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([], "the engine sent no answer"),
        ([DONE], "the engine sent no answer"),
        ([chunk({"content": "x"})], "the engine's answer broke off"),
        ([chunk({"content": "x"}), b'data: {"error": {"message": "no room", "code": 503}}\n\n'], "no room"),
        ([chunk({"content": "x"}), chunk(finish="abort")], "the engine gave the turn up"),
        ([b"data: <html>\n\n"], "the engine sent what is no Chat Completions answer"),
    ],
)
def test_failures_end_a_stream_of_either_form(events: list[bytes], why: str) -> None:
    assert told_by_events(translated(events)).error == why
    assert told_by_array(translated(events, dialect=ARRAY)).error == why


def test_the_status_of_a_failure_is_the_engines() -> None:
    answer = translated([b'data: {"error": {"message": "no room", "code": 503}}\n\n'])
    assert json.loads(answer) == {"error": {"code": 503, "message": "no room", "status": "UNAVAILABLE"}}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "the engine sent no answer"),
        (b"<html>", "the engine sent what is no Chat Completions answer"),
        (b'{"choices": [{"message": {"content": "x"}, "finish_reason": "error"}]}', "the engine gave the turn up"),
        (b'{"x": "%b"}' % (b"x" * ANSWER_BYTES_MAX), "the engine's answer is too long to be translated"),
    ],
)
def test_a_whole_answer_that_is_none(body: bytes, why: str) -> None:
    with pytest.raises(UnfitAnswerError) as caught:
        translated([body], stream=False)
    assert str(caught.value) == why


def test_calls_that_are_too_long_are_a_failure() -> None:
    piece = tool_call(0, call_id="a", name="look", arguments="x" * 1_000_000)
    assert told(*[piece] * 9, chunk(finish="stop")).error == "the engine's tool calls are too long to be translated"


def test_a_whole_answer_and_a_stream_say_the_same() -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x": [1]}'}}]
    message = {"content": "Hi", "reasoning_content": "hm", "tool_calls": calls}
    body: dict[str, Any] = {"id": "c1", "model": "e", "usage": USAGE}
    body["choices"] = [{"message": message, "finish_reason": "tool_calls"}]
    whole = told_by([json.loads(translated([json.dumps(body).encode()], THINKS, stream=False))])
    events = [chunk({"reasoning_content": "hm"}), chunk({"content": "Hi"})]
    events += [tool_call(0, call_id="a", name="look", arguments='{"x": [1]}')]
    assert told(*events, chunk(finish="tool_calls"), chunk(usage=USAGE), DONE, request=THINKS) == whole


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
FRAGMENTS = st.builds(
    tool_call,
    st.integers(0, 2),
    call_id=st.sampled_from([None, "a", "b"]),
    name=st.sampled_from([None, "look", "see"]),
    arguments=st.sampled_from(["", "{}", '{"x":', "1}", "]"]),
)
ANYTHING = st.one_of(
    st.builds(lambda text: chunk({"content": text}), TEXTS),
    st.builds(lambda text: chunk({"reasoning": text}), TEXTS),
    FRAGMENTS,
    st.builds(lambda reason: chunk(finish=reason), st.sampled_from(["stop", "length", "tool_calls", "abort"])),
    st.sampled_from(
        [chunk(usage=USAGE), DONE, b": x\n\n", b"data: []\n\n", b'data: {"error":"e"}\n\n', b"event: x\n\n"]
    ),
)


@given(st.lists(ANYTHING, max_size=14), st.lists(st.integers(0, 100_000), max_size=6), st.booleans())
def test_whatever_comes_the_stream_is_legal_and_ends_once(events: list[bytes], cuts: list[int], thinks: bool) -> None:
    sent = b"".join(events)
    request = THINKS if thinks else written()
    as_events, as_array = (translated([sent], request, dialect=dialect) for dialect in (EVENTS, ARRAY))
    assert told_by_events(as_events) == told_by_array(as_array)

    points = [0, *sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)]
    pieces = [sent[begin:end] for begin, end in itertools.pairwise(points)]
    assert translated(pieces, request) == as_events
    assert translated(pieces, request, dialect=ARRAY) == as_array
