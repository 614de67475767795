import json

import pytest

from core.dialects.openai_responses.exchanges import (
    PATH,
    RESPONSES,
    Object,
    call,
    message,
    messages_of,
    output,
    said,
    written,
)
from luftpause.core.dialects.request import BadRequestError

IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "high"}
SHOWN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "high"}}


def text(value: str) -> Object:
    return {"type": "text", "text": value}


def called(call_id: str, name: str = "look", arguments: str = "{}") -> Object:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(call_id: str, content: str) -> Object:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_instructions_before_everything_are_one_system_message() -> None:
    items = (message("developer", "b"), {"role": "system", "content": "c"}, {"role": "user", "content": "hi"})
    assert messages_of(*items, instructions="a") == [
        {"role": "system", "content": "a\n\nb\n\nc"},
        {"role": "user", "content": "hi"},
    ]


def test_later_instructions_stay_in_their_place() -> None:
    items = (
        message("user", "hi"),
        message("developer", "be brief"),
        message("assistant", "ok"),
        message("system", "x"),
    )
    assert messages_of(*items) == [
        {"role": "user", "content": "hi\n\n<instructions>\nbe brief\n</instructions>"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "<instructions>\nx\n</instructions>"},
    ]


def test_a_turn_of_the_model_is_one_message() -> None:
    items = (
        message("user", "hi"),
        {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        message("assistant", "let me see"),
        call("call_1", arguments='{"a": 1}'),
        {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": 'say "x"'},
        output("call_2", "fine"),
        output("call_1", [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]),
        message("assistant", "done", {"type": "refusal", "refusal": "no more"}),
    )
    assert messages_of(*items) == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "let me see",
            "reasoning_content": "hm",
            "tool_calls": [
                called("call_1", arguments='{"a": 1}'),
                called("call_2", "patch", '{"input":"say \\"x\\""}'),
            ],
        },
        result("call_2", "fine"),
        result("call_1", "a\n\nb"),
        {"role": "assistant", "content": "done\n\nno more"},
    ]


def test_what_was_said_once_is_written_the_same_way_later() -> None:
    items: list[Object] = [
        message("developer", "d"),
        message("user", "hi"),
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]},
        call("call_1"),
        output("call_1", [IMAGE]),
        message("assistant", "ok"),
        message("user", "go on"),
        call("call_2"),
    ]
    whole = messages_of(*items)
    for length in (2, 4, 6, 7):
        part = messages_of(*items[:length])
        assert whole[: len(part)] == part


def test_results_come_before_what_the_user_says_meanwhile() -> None:
    items = (call("call_1"), call("call_2"), output("call_1", "a"), message("user", "hurry"), output("call_2", "b"))
    assert messages_of(*items)[1:] == [
        result("call_1", "a"),
        result("call_2", "b"),
        {"role": "user", "content": "hurry"},
    ]


def test_images_of_tools_are_shown_by_the_user() -> None:
    items = (call("call_1"), output("call_1", [{"type": "input_text", "text": "a"}, IMAGE]), message("user", "and?"))
    assert messages_of(*items)[1:] == [
        result("call_1", "a\n\n(1 more, shown in the next message of the user)"),
        {"role": "user", "content": [text("Returned by the tool call call_1:"), SHOWN, text("and?")]},
    ]


def test_parts_of_a_message() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    assert messages_of(message("user", "see", IMAGE, audio)) == [
        {"role": "user", "content": [text("see"), SHOWN, audio]}
    ]


@pytest.mark.parametrize(
    "reasoning", [{"summary": [], "encrypted_content": "x"}, {"summary": [], "content": None}, {"content": []}]
)
def test_reasoning_that_nobody_can_read_is_left_out(reasoning: Object) -> None:
    assert messages_of(message("user", "a"), {"type": "reasoning", **reasoning}, message("assistant", "b")) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
    ]


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]}
    assert messages_of(message("user", "a"), thought) == [{"role": "user", "content": "a"}]


def test_what_hosted_tools_did_is_left_out() -> None:
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    assert messages_of(message("user", "a"), searched) == [{"role": "user", "content": "a"}]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", "{}"),
        ('{"a": ', '{"input":"{\\"a\\": "}'),
        ("[1]", '{"input":"[1]"}'),
        ('{"a": 1.50}', '{"a": 1.50}'),
        ({"a": 1}, '{"a": 1}'),
        (None, '{"input":"null"}'),
    ],
)
def test_arguments_are_json_whatever_a_model_once_wrote(arguments: object, expected: str) -> None:
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": arguments}
    [spoken] = messages_of(item)
    assert spoken["tool_calls"] == [called("c", arguments=expected)]


def test_a_search_for_tools_makes_what_it_found_callable() -> None:
    search = {"type": "tool_search", "execution": "client", "description": "d"}
    echo = {"type": "function", "name": "echo", "description": "e", "parameters": {"type": "object"}}
    items = (
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "echo"}},
        {
            "type": "tool_search_output",
            "call_id": "c",
            "tools": [{"type": "namespace", "name": "mcp__x", "tools": [echo]}],
        },
    )
    chat = said(*items, tools=[search])
    assert chat["messages"] == [
        {"role": "assistant", "content": "", "tool_calls": [called("c", "tool_search", '{"query": "echo"}')]},
        result("c", '{"found":["mcp__x__echo"]}'),
    ]
    assert "mcp__x__echo" in json.dumps(chat["tools"])


@pytest.mark.parametrize("role", ["assistant", "system", "developer", "user"])
def test_no_message_loses_its_file(role: str) -> None:
    file = {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,cmVk"}
    for before in ([], [message("user", "hi")]):
        assert "a.txt:\n\nred" in str(messages_of(*before, message(role, file))[-1]["content"])
    with pytest.raises(BadRequestError, match="names a file by its id"):
        RESPONSES.translate(PATH, written(message(role, {"type": "input_file", "file_id": "f"})))


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ({"type": "item_reference", "id": "msg_1"}, "`input.0.`.*`item_reference`.*`store` false"),
        ({"id": "msg_1"}, "item_reference"),
        ({"type": "computer_call_output", "call_id": "c", "output": "x"}, "'computer_call_output'"),
        ({"type": "compaction", "encrypted_content": "x"}, "'compaction'"),
        ({"type": "message", "role": "critic", "content": "x"}, "'critic'"),
        (message("user", {"type": "input_file", "file_id": "f"}), "an `input_file` names a file by its id, and"),
        (message("user", {"type": "input_image", "file_id": "f"}), "no `image_url`"),
        ({"type": "function_call_output", "output": "x"}, "no `call_id`"),
        ({"type": "function_call", "name": "x", "arguments": "{}"}, "no `call_id`"),
        (message("user", {"text": "x"}), r"\$.input\[0\].content"),
    ],
)
def test_what_cannot_be_said_is_named_with_its_place(item: Object, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        RESPONSES.translate(PATH, written(item))
