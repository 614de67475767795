import json

import pytest

from core.dialects.openai_responses.exchanges import (
    PATH,
    RESPONSES,
    Object,
    events_of,
    response_of,
    said,
    translated,
    written,
)
from luftpause.core.dialects.request import BadRequestError

HI = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def test_the_least_that_can_be_asked() -> None:
    assert said() == {"model": "m", "messages": HI}


def test_a_stream_is_asked_for_with_its_usage() -> None:
    assert said(stream=True, stream_options={"include_obfuscation": False}) == {
        "model": "m",
        "messages": HI,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert said(stream=False) == said()


@pytest.mark.parametrize(
    ("asked", "chat"),
    [
        ({"max_output_tokens": 7}, {"max_tokens": 7}),
        ({"temperature": 0.10, "top_p": 1, "user": "u"}, {"temperature": 0.1, "top_p": 1, "user": "u"}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"reasoning": None, "temperature": None}, {}),
        ({"text": {"verbosity": "low", "format": {"type": "text"}}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
                }
            },
        ),
        ({"prompt_cache_key": "k"}, {"prompt_cache_key": "k"}),
        ({"seed": 3, "chat_template_kwargs": {"x": [1]}}, {"seed": 3, "chat_template_kwargs": {"x": [1]}}),
        ({"background": False, "previous_response_id": None, "top_logprobs": 0}, {}),
        (
            {
                "include": ["reasoning.encrypted_content"],
                "store": True,
                "metadata": {"a": "b"},
                "client_metadata": {"c": "d"},
                "service_tier": "flex",
                "truncation": "auto",
                "safety_identifier": "s",
            },
            {},
        ),
        ({"tool_choice": "auto", "parallel_tool_calls": False, "tools": []}, {}),
        ({"max_output_tokens": 7.0, "top_k": 4e1, "seed": 1.0}, {"max_tokens": 7, "top_k": 40, "seed": 1}),
    ],
)  # fmt: skip
def test_what_is_asked_beside_the_conversation(asked: Object, chat: Object) -> None:
    assert said(**asked) == {"model": "m", "messages": HI, **chat}


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"previous_response_id": "resp_1"}, "`previous_response_id`"),
        ({"conversation": {"id": "c"}}, "`conversation`"),
        ({"prompt": {"id": "p"}}, "`prompt`"),
        ({"background": True}, "`background`"),
        ({"moderation": {"model": "x"}}, "`moderation`"),
        ({"top_logprobs": 3}, "`top_logprobs`"),
        ({"include": ["message.output_text.logprobs"]}, "logprobs"),
        ({"text": {"format": {"type": "grammar"}}}, "`text.format` of type 'grammar'"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}, "no other tools than file_search"),
        ({"tools": [{"type": "web_search"}, {"type": "mcp"}]}, "no other tools than web_search, mcp"),
        ({"tools": [{"type": "local_shell"}]}, "'local_shell'"),
        ({"tools": [{"type": "function"}]}, "no name"),
        ({"tools": 7}, r"\$.tools"),
        ({"tools": [{"name": "x"}]}, r"`\$.tools\[0\]`"),
        ({"instructions": ["x"]}, r"`\$.instructions`"),
        ({"stream": 1}, r"`\$.stream`"),
        ({"tool_choice": {"type": "function", "name": "x"}}, "'function x'"),
        (
            {
                "tool_choice": {"type": "web_search"},
                "tools": [{"type": "web_search"}, {"type": "function", "name": "x"}],
            },
            "'web_search'",
        ),
        ({"tool_choice": {}}, "nothing"),
    ],
)
def test_what_cannot_be_said_is_named(asked: Object, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        RESPONSES.translate(PATH, written(**asked))


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"model": "m"}', "`input` is missing"),
        (b'{"model": "m", "input": 7}', r"`\$.input`"),
        (b'{"model": "m", "input": [7]}', r"`\$.input\[0\]`"),
        (b'{"model": "m", "input": "x\xff"}', "no UTF-8 at byte"),
        (b'{"model": "m", "input": %b}' % (b"[" * 100_000 + b"]" * 100_000), "too deeply"),
        (b"[]", "not valid JSON|expected"),
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        RESPONSES.translate(PATH, body)


def test_half_of_a_surrogate_pair_does_not_end_a_run() -> None:
    body = rb'{"model": "m", "input": "cut \ud83d", "temperature": 0.5}'
    chat = json.loads(RESPONSES.translate(PATH, body).request)
    assert chat == {"model": "m", "messages": [{"role": "user", "content": "cut ?"}], "temperature": 0.5}


def test_a_response_repeats_what_was_asked_on_one_line() -> None:
    asked = {
        "max_output_tokens": 7,
        "metadata": {"a": "b\n"},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "tool_choice": "none",
        "temperature": 0.5,
    }
    body = json.dumps({"model": "m", "input": "hi", "stream": True, "instructions": "long", **asked}, indent=2).encode()
    response = response_of(events_of(translated(body, [b'data: {"error": "x"}\n\n'])))

    assert {name: response[name] for name in asked} == asked
    assert (response["model"], response["instructions"], response["store"]) == ("m", None, False)
