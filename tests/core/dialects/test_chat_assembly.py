import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.chat_assembly import ChatAssembly

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
                "content": None,
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


@given(cuts=st.lists(st.integers(0, len(TEXT)), max_size=6))
def test_the_document_does_not_depend_on_the_cuts(cuts: list[int]) -> None:
    assert assembled(TEXT, *cuts) == assembled(TEXT)


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"data: [DONE]\n\n",
        b"data: nonsense\n\n",
        b'data: [1]\n\ndata: {"choices":7}\n\n',
        b'data: {"choices":[1,{"index":"x"},{"delta":[]}]}\n\n',
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":9},3],"content":4}}]}\n\n',
        b"data: " + b"[" * 90_000 + b"\n\n",
    ],
)
def test_whatever_comes_becomes_a_document(stream: bytes) -> None:
    whole = assembled(stream)

    assert isinstance(whole, dict)
    assert whole["object"] == "chat.completion"


def test_a_refusal_passes_as_it_came() -> None:
    assert ChatAssembly().error(500, b"sorry") == b"sorry"
