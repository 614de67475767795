import json

import pytest

from core.dialects.gemini.exchanges import Object, call, messages_of, model, result, text, user
from luftpause.core.dialects.request import BadRequestError


def called(call_id: str, name: str = "look", arguments: str = "{}") -> Object:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_the_system_instruction_comes_first() -> None:
    said = messages_of(user(text("hi")), systemInstruction={"parts": [text("Be brief."), text(""), text("Be kind.")]})
    assert said == [{"role": "system", "content": "Be brief.\n\nBe kind."}, {"role": "user", "content": "hi"}]
    assert messages_of(user(text("hi")), system_instruction={"parts": [text("x")]})[0]["content"] == "x"


def test_messages_of_one_side_become_one() -> None:
    said = messages_of({"parts": [text("a")]}, user(text("b"), text("c")), model(text("d")), model(text("e")))
    assert said == [{"role": "user", "content": "a\n\nb\n\nc"}, {"role": "assistant", "content": "de"}]


def test_calls_and_results_with_ids() -> None:
    said = messages_of(
        user(text("go")),
        model({"text": "hm", "thought": True}, text("I look."), call("look", "1", x=1), call("see", "2")),
        user(result("see", {"output": "nothing"}, "2"), result("look", {"a": [1, None]}, "1"), text("and?")),
    )
    assert said[1:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "hm",
            "tool_calls": [called("1", arguments='{"x":1}'), called("2", "see")],
        },
        {"role": "tool", "tool_call_id": "2", "content": "nothing"},
        {"role": "tool", "tool_call_id": "1", "content": '{"a":[1,null]}'},
        {"role": "user", "content": "and?"},
    ]


def test_results_without_ids_belong_to_the_calls_of_their_name_in_order() -> None:
    said = messages_of(
        user(text("go")),
        model(call("look"), call("see"), call("look")),
        user(result("look", {"output": "a"}), result("look", {"output": "b"}), result("see", {"output": "c"})),
        model(call("look")),
        {"role": "function", "parts": [result("other", {"error": "d"})]},
    )
    assert [(m["tool_call_id"], m["content"]) for m in said if m["role"] == "tool"] == [
        ("call_0", "a"),
        ("call_2", "b"),
        ("call_1", "c"),
        ("call_3", "Error: d"),
    ]


def test_results_without_ids_belong_to_calls_with_ids_too() -> None:
    said = messages_of(
        user(text("go")),
        model(call("look", "x"), call("look", "y")),
        user(result("look", {"output": "a"}, "x"), result("look", {"output": "b"})),
    )
    assert [m["tool_call_id"] for m in said if m["role"] == "tool"] == ["x", "y"]


def test_a_result_that_answers_nothing_is_refused() -> None:
    with pytest.raises(BadRequestError, match="'look' answers no `functionCall`"):
        messages_of(user(result("look", {})))


@pytest.mark.parametrize(
    ("response", "content"),
    [
        ({"output": "x"}, "x"),
        ({"error": "x"}, "Error: x"),
        ({"output": {"a": 1}}, '{"output":{"a":1}}'),
        ({"output": "x", "error": "y"}, '{"output":"x","error":"y"}'),
        ({"result": "x"}, '{"result":"x"}'),
        ({}, ""),
        (None, ""),
        ("x", '"x"'),
    ],
)
def test_what_a_result_says(response: object, content: str) -> None:
    said = messages_of(user(text("go")), model(call("look", "1")), user(result("look", response, "1")))
    assert said[-1] == {"role": "tool", "tool_call_id": "1", "content": content}


def test_pictures_of_a_result_are_shown_by_the_user() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    said = messages_of(
        user(text("go")), model(call("look", "1")), user(text("see"), result("look", {}, "1", parts=[picture]))
    )
    assert said[2:] == [
        {"role": "tool", "tool_call_id": "1", "content": "(1 more, shown in the next message)"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Returned by the tool call 1:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "text", "text": "see"},
            ],
        },
    ]


def test_what_says_nothing_is_left_out() -> None:
    said = messages_of(user(text("go"), {}), model({"thoughtSignature": "x"}, text("")), user(text("on")))
    assert said == [{"role": "user", "content": "go\n\non"}]


def test_what_googles_tools_did_is_left_out_since_the_text_tells_of_it() -> None:
    did: tuple[Object, ...] = ({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}})
    searched: tuple[Object, ...] = ({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB"}}, {"toolResponse": {"response": {}}})
    said = messages_of(user(text("go")), model(*did, text("It is 1."), *searched), user(text("on")))
    assert [message["content"] for message in said] == ["go", "It is 1.", "on"]
    only = messages_of(user(text("go")), model(*did), user(text("on")))
    assert only == [{"role": "user", "content": "go\n\non"}]


@pytest.mark.parametrize(
    ("contents", "what"),
    [
        ([{"role": "system", "parts": [text("x")]}], "the role 'system'"),
        ([user({"toolResponse": {}})], "the user holds tool_response"),
        ([user(call("look"))], "the user holds function_call"),
        ([model({"inlineData": {"mimeType": "image/png"}})], "the model holds inline_data"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(contents: list[Object], what: str) -> None:
    with pytest.raises(BadRequestError, match=what):
        messages_of(*contents)


def test_a_system_instruction_is_text() -> None:
    with pytest.raises(BadRequestError, match="instruction holds file_data"):
        messages_of(user(text("x")), systemInstruction={"parts": [{"fileData": {"fileUri": "x"}}]})


def test_arguments_keep_the_order_and_the_values_that_they_had() -> None:
    arguments = {"b": 1.5, "a": {"c_d": [None, True, "é"]}}
    said = messages_of(user(text("go")), model({"functionCall": {"name": "look", "args": arguments}}))
    assert said[1]["tool_calls"][0]["function"]["arguments"] == json.dumps(
        arguments, ensure_ascii=False, separators=(",", ":")
    )
