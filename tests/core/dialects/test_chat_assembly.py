import itertools
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.chat_answer import (
    ANSWER_BYTES_MAX,
    CALLS_MAX,
    CallArguments,
    CallBegun,
    ChatStreamReader,
    Piece,
    read_chat_answer,
)
from luftpause.core.dialects.chat_assembly import ChatAssembly, CompletionAssembly
from luftpause.core.dialects.dialect import UnfitAnswerError

TEXT = (
    b'data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":null},"finish_reason":null}]}\n\n'
    b": waiting\n\n"
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Hel"},"logprobs":{"content":[{"token":"Hel"}]}}]}\n\n'
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"lo"},"logprobs":{"content":[{"token":"lo"}]}}]}\n\n'
    b'data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2},"timings":{"x":1}}\n\n'
    b"data: [DONE]\n\n"
)
CALLS = (
    b'data: {"choices":[{"delta":{"reasoning_content":"hm","tool_calls":[{"index":0,"id":"a","type":"function",'
    b'"function":{"name":"f","arguments":""}}]}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"x\\":"}}]}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},'
    b'"finish_reason":"tool_calls"}]}\n\n'
)


REAL = Path(__file__).parent / "anthropic_messages" / "golden"


def assembled(stream: bytes, *cuts: int) -> object:
    assembly = ChatAssembly()
    bounds = [0, *sorted(cuts), len(stream)]
    for start, end in itertools.pairwise(bounds):
        assert assembly.feed(stream[start:end]) == b""
    return msgspec.json.decode(assembly.end())


def test_a_text_is_joined_and_what_the_engine_says_besides_is_kept() -> None:
    assert assembled(TEXT) == {
        "id": "c1",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        "timings": {"x": 1},
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "logprobs": {"content": [{"token": "Hel"}, {"token": "lo"}]},
                "finish_reason": "stop",
            }
        ],
    }


def test_parallel_tool_calls_are_told_apart_by_their_index() -> None:
    whole = assembled(CALLS)

    assert isinstance(whole, dict)
    assert whole["choices"] == [
        {
            "index": 0,
            "message": {
                "content": "",
                "role": "assistant",
                "reasoning_content": "hm",
                "tool_calls": [
                    {"type": "function", "function": {"name": "f", "arguments": '{"x":1}'}, "id": "a"},
                    {"type": "function", "function": {"name": "g", "arguments": "{}"}, "id": "b"},
                ],
            },
            "finish_reason": "tool_calls",
        }
    ]


def test_what_is_said_in_parts_is_kept_whole() -> None:
    thought = '{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}'
    whole = assembled(
        b"".join(
            b'data: {"choices":[{"delta":{"content":%b}}]}\n\n' % said.encode()
            for said in ('""', f"[{thought}]", '[{"type":"text","text":"a"}]', '"b"')
        )
        + b"data: [DONE]\n\n"
    )

    assert isinstance(whole, dict)
    assert whole["choices"][0]["message"]["content"] == [
        msgspec.json.decode(thought),
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]


def test_the_pieces_of_a_call_of_the_days_before_tools_are_joined() -> None:
    whole = assembled(
        b'data: {"choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]}\n\n'
        b'data: {"choices":[{"delta":{"function_call":{"arguments":"{}"}},"finish_reason":"function_call"}]}\n\n'
    )

    assert isinstance(whole, dict)
    assert whole["choices"][0]["message"]["function_call"] == {"name": "f", "arguments": "{}"}


@given(cuts=st.lists(st.integers(0, len(TEXT)), max_size=6))
def test_the_document_does_not_depend_on_the_cuts(cuts: list[int]) -> None:
    assert assembled(TEXT, *cuts) == assembled(TEXT)


@pytest.mark.parametrize(
    "stream",
    [
        b'data: {"choices":[1,{"index":"x"},{"delta":[]}]}\n\ndata: [DONE]',
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":9},3],"content":4},"finish_reason":"stop"}]}\n\n',
        b'data: {"choices":[{}]}\n\ndata: [DONE] \n\ndata: [DONE]\n\n',
    ],
)
def test_whatever_is_said_becomes_a_document(stream: bytes) -> None:
    whole = assembled(stream)

    assert isinstance(whole, dict)
    assert whole["object"] == "chat.completion"


@pytest.mark.parametrize("assembly", [ChatAssembly, CompletionAssembly])
def test_an_answer_that_told_neither_of_its_end_nor_why_broke_off(assembly: type[ChatAssembly]) -> None:
    begun = assembly()
    begun.feed(b'data: {"choices":[{"delta":{"content":"a"},"text":"a","finish_reason":null}]}\n\n')
    with pytest.raises(UnfitAnswerError, match="broke off"):
        begun.end()


@pytest.mark.parametrize(("said", "reason"), [(b'"content":"a"', "stop"), (b'"tool_calls":[{"id":"a"}]', "tool_calls")])
def test_why_an_answer_ended_that_only_said_that_it_is_over_is_told_by_what_it_holds(said: bytes, reason: str) -> None:
    whole = assembled(b'data: {"choices":[{"delta":{%b},"finish_reason":null}]}\n\ndata: [DONE]\n\n' % said)
    assert isinstance(whole, dict)
    assert whole["choices"][0]["finish_reason"] == reason


def test_a_refusal_passes_as_it_came() -> None:
    assert ChatAssembly().error(500, b"sorry") == b"sorry"


@pytest.mark.parametrize(
    ("delta", "content"),
    [
        (b'{"content":null}', ""),
        (b'{"reasoning_content":"hm"}', ""),
        (b'{"content":null,"tool_calls":[{"index":0,"id":"a"}]}', ""),
        (b'{"content":"I look.","tool_calls":[{"index":0,"id":"a"}]}', "I look."),
    ],
)
def test_an_answer_without_text_has_an_empty_one(delta: bytes, content: str) -> None:
    whole = assembled(b'data: {"choices":[{"delta":%b,"finish_reason":"stop"}]}\n\n' % delta)
    assert isinstance(whole, dict)
    assert whole["choices"][0]["message"]["content"] == content


@pytest.mark.parametrize("name", ["chat_tool", "chat_text", "chat_stop"])
def test_it_is_as_a_real_llama_server_writes_it_whole(name: str) -> None:
    """Two answers of one engine, one streamed: they differ in what the model said, and in ids and times."""
    whole, streamed = (
        msgspec.json.decode((REAL / f"{name}.json").read_bytes()),
        assembled((REAL / f"{name}.sse").read_bytes()),
    )
    assert shape_of(streamed) == shape_of(whole)


def shape_of(value: object) -> object:
    if isinstance(value, dict):
        return {key: shape_of(each) for key, each in sorted(value.items()) if key != "timings"}
    if isinstance(value, list):
        return [shape_of(each) for each in value]
    return value == "" if isinstance(value, str) else type(value).__name__


def test_its_calls_are_known_by_the_ids_that_the_client_gets() -> None:
    assembly = ChatAssembly()
    assembly.feed(CALLS)
    assert assembly.call_ids() == ("a", "b")


COMPLETION = (
    b'data: {"id":"c1","object":"text_completion","choices":[{"index":0,"text":"Hel","logprobs":'
    b'{"tokens":["Hel"]},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"text":"lo","logprobs":{"tokens":["lo"]},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":1}}\n\n'
    b"data: [DONE]\n\n"
)


@given(cuts=st.lists(st.integers(0, len(COMPLETION)), max_size=6))
def test_a_completion_is_put_together_wherever_it_is_cut(cuts: list[int]) -> None:
    assembly = CompletionAssembly()
    for start, end in itertools.pairwise([0, *sorted(cuts), len(COMPLETION)]):
        assert assembly.feed(COMPLETION[start:end]) == b""
    choice = {"text": "Hello", "index": 0, "logprobs": {"tokens": ["Hel", "lo"]}, "finish_reason": "length"}
    assert msgspec.json.decode(assembly.end()) == {
        "id": "c1",
        "object": "text_completion",
        "choices": [choice],
        "usage": {"prompt_tokens": 1},
    }
    assert assembly.call_ids() == ()


def test_an_event_that_is_too_long_leaves_no_hole() -> None:
    assembly = ChatAssembly()
    assembly.feed(b"data: " + b"x" * (ANSWER_BYTES_MAX + 10))
    assembly.feed(b"\n\n" + TEXT)
    with pytest.raises(UnfitAnswerError, match="too long"):
        assembly.end()


def call_piece(index: int | None = None, call_id: str = "", name: str = "", arguments: object = "") -> bytes:
    """Return an event with a piece of a tool call, of which only what is given is said."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value != ""}
    said = {"index": index, "id": call_id, "function": function}
    call = {key: value for key, value in said.items() if value not in (None, "")}
    return b"data: " + msgspec.json.encode({"choices": [{"delta": {"tool_calls": [call]}}]}) + b"\n\n"


QUIRKS = {
    "one index for all": [call_piece(0, "a", "f", "{}"), call_piece(0, "b", "g", "{"), call_piece(0, arguments="}")],
    "no index": [call_piece(None, "a", "f", "{}"), call_piece(None, "b", "g", "{"), call_piece(None, "b", "", "}")],
    "a name in fragments": [call_piece(0, "a", "lo"), call_piece(0, "", "ok"), call_piece(0, arguments="{}")],
    "a name again and again": [call_piece(0, "a", "f", "{"), call_piece(0, "", "f", "}")],
    "from one on": [call_piece(1, "a", "f"), call_piece(2, "b", "g"), call_piece(1, "", "", "{}")],
    "backwards": [call_piece(1, "b", "g", "{}"), call_piece(0, "a", "f", "{}")],
    "an object": [call_piece(0, "a", "f", {"x": 1})],
    "no id": [call_piece(0, "", "f", "{}"), call_piece(1, "", "g", "{}")],
}


@pytest.mark.parametrize("pieces", QUIRKS.values(), ids=QUIRKS)
def test_calls_are_told_apart_as_they_are_in_a_stream(pieces: list[bytes]) -> None:
    """What an engine does to its calls is the same whether its client wants a stream or not."""

    def calls_in(found: list[Piece]) -> list[list[str]]:
        calls: list[list[str]] = []
        for piece in found:
            if isinstance(piece, CallBegun):
                calls.append([piece.id, piece.name, ""])
            elif isinstance(piece, CallArguments):
                calls[piece.call][2] += piece.text
        return calls

    reader, assembly = ChatStreamReader(), ChatAssembly()
    stream = b"".join((*pieces, b"data: [DONE]\n\n"))
    assembly.feed(stream)
    assert calls_in(read_chat_answer(assembly.end())) == calls_in([*reader.feed(stream), *reader.end()])


@pytest.mark.parametrize("garbage", [b"nonsense", b"[1]", b"7", b'"x"', b'{"a":', b"{}\0", b"[" * 90_000], ids=range(7))
def test_an_event_that_cannot_be_read_makes_no_answer_with_a_hole(garbage: bytes) -> None:
    assembly = ChatAssembly()
    assembly.feed(TEXT.partition(b": waiting")[0])

    with pytest.raises(UnfitAnswerError, match="no piece of an answer"):
        assembly.feed(b"data: " + garbage + b"\n\n")


def test_what_follows_the_end_is_none_of_the_answer() -> None:
    assert assembled(TEXT + TEXT) == assembled(TEXT)
    assert assembled(TEXT.replace(b"[DONE]", b"[DONE] ") + b"data: nonsense\n\n") == assembled(TEXT)


def test_half_an_emoji_is_shown_as_such() -> None:
    whole = assembled(rb'data: {"choices":[{"delta":{"content":"a\ud83db"},"finish_reason":"stop"}]}' + b"\n\n")
    assert isinstance(whole, dict)
    assert whole["choices"][0]["message"]["content"] == "a\ufffdb"


def test_calls_without_end_are_unfit() -> None:
    assembly = ChatAssembly()
    for number in range(CALLS_MAX):
        assembly.feed(call_piece(number, f"c{number}", "f"))

    with pytest.raises(UnfitAnswerError, match="more than 256 tool calls"):
        assembly.feed(call_piece(CALLS_MAX, "one more", "f"))


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"data: [DONE]\n\n",
        b": hello\n\n",
        b"<html>",
        b'data: {"usage":{}}\n\n',
        b'data: {"choices":7}\n\n',
    ],
)
def test_a_stream_that_says_nothing_is_no_answer(stream: bytes) -> None:
    """An agent would look for its first choice and fail on that."""
    for assembly in (ChatAssembly(), CompletionAssembly()):
        assembly.feed(stream)
        with pytest.raises(UnfitAnswerError, match="no answer"):
            assembly.end()


def test_an_error_that_is_written_flat_keeps_its_words() -> None:
    assembly = ChatAssembly()
    assembly.feed(b'data: {"object":"error","message":"too long for it","code":400}\n\ndata: [DONE]\n\n')
    with pytest.raises(UnfitAnswerError, match="it sent no answer: too long for it"):
        assembly.end()
