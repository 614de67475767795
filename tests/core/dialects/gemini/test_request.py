import json

import msgspec
import pytest

from core.dialects.gemini.exchanges import user
from luftpause.core.dialects.gemini.request import read_request
from luftpause.core.dialects.request import BadRequestError


def test_members_may_be_written_in_either_case_and_the_clients_own_stay_as_they_are() -> None:
    part = {"function_call": {"name": "f", "args": {"a_b": {"c_d": 1}}}}
    body = {
        "contents": [user(part)],
        "generation_config": {"max_output_tokens": 3, "response_schema": {"properties": {"x_y": {}}}},
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"x_y": 1}}]}],
    }
    request = read_request(json.dumps(body).encode())
    assert request.contents[0].parts is not None
    (read,) = request.contents[0].parts
    assert read.function_call is not None
    assert read.function_call.args == {"a_b": {"c_d": 1}}
    assert request.generation_config is not None
    assert request.generation_config.max_output_tokens == 3
    assert request.generation_config.response_schema == {"properties": {"x_y": {}}}
    assert request.tools == [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"x_y": 1}}]}]


def test_one_of_a_list_may_stand_for_it_as_in_googles_own_examples() -> None:
    declaration = {"name": "look", "parameters": {"type": "OBJECT", "properties": {"parts": {"type": "STRING"}}}}
    bare = {
        "system_instruction": {"parts": {"text": "Help."}},
        "contents": {"role": "user", "parts": {"text": "hi"}},
        "tools": {"function_declarations": declaration},
    }
    listed = {
        "systemInstruction": {"parts": [{"text": "Help."}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [declaration]}],
    }
    assert read_request(json.dumps(bare).encode()) == read_request(json.dumps(listed).encode())


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    (content,) = read_request(rb'{"contents": [{"parts": [{"text": "a\ud83d \ud83d\ude00 \\ud83d"}]}]}').contents
    assert [part.text for part in content.parts or ()] == ["a\ufffd \U0001f600 \\ud83d"]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b'{"contents": [{"parts": "hi"}]}', r"expected `array \| null`, got `str` - at `\$.contents\[0\].parts`"),
        (b'{"contents": "hi"}', r"at `\$.contents`"),
        (b"[", "does not fit"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "nested too deeply"),
    ],
)
def test_what_is_no_request_is_refused(body: bytes, what: str) -> None:
    with pytest.raises(BadRequestError, match=what):
        read_request(body)


def test_a_whole_number_with_a_fraction_of_nothing_is_one() -> None:
    config = {"maxOutputTokens": 7.0, "topK": 40.0, "temperature": 1.0, "thinkingConfig": {"thinkingBudget": 0.0}}
    call = {"functionCall": {"name": "f", "args": {"x": 1.0}}}
    body = json.dumps({"contents": [{"role": "model", "parts": [call]}], "generationConfig": config}).encode()
    request = read_request(body)
    assert request.generation_config is not None
    assert request.generation_config.max_output_tokens == 7
    assert b'"args":{"x":1.0}' in msgspec.json.encode(request)
    with pytest.raises(BadRequestError, match="maxOutputTokens"):
        read_request(b'{"generationConfig":{"maxOutputTokens":7.5}}')
