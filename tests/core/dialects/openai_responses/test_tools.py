import json
from typing import cast

import pytest

from core.dialects.openai_responses.exchanges import (
    PATH,
    RESPONSES,
    Object,
    answered,
    call,
    chunk,
    message,
    output_of,
    said,
    tool_call,
    written,
)
from luftpause.core.dialects.openai_responses.tools import NAME_CHARS_MAX
from luftpause.core.dialects.request import BadRequestError

PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}
LOOK = {"type": "function", "name": "look", "description": "looks", "parameters": PARAMETERS, "strict": False}
NAMED = {"type": "namespace", "name": "mcp__eye", "description": "eyes", "tools": [LOOK, {**LOOK, "name": "see"}]}
PATCH = {
    "type": "custom",
    "name": "patch",
    "description": "patches",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
}
SEARCH = {"type": "tool_search", "execution": "client", "description": "finds", "parameters": PARAMETERS}
ALL = [LOOK, NAMED, PATCH, SEARCH, {"type": "web_search"}]


def functions(*tools: object, **members: object) -> list[Object]:
    offered = cast("list[dict[str, Object]]", said(tools=tools, **members).get("tools", []))
    return [tool["function"] for tool in offered]


def names(*tools: object, **members: object) -> list[object]:
    return [function["name"] for function in functions(*tools, **members)]


def test_what_becomes_of_each_kind_of_tool() -> None:
    assert names(*ALL) == ["look", "mcp__eye__look", "mcp__eye__see", "patch", "tool_search"]
    look, _, see, patch, search = functions(*ALL)
    assert look == {"name": "look", "description": "looks", "parameters": PARAMETERS}
    assert see == {**look, "name": "mcp__eye__see"}
    assert search == {**look, "name": "tool_search", "description": "finds"}
    assert patch["description"] == "patches\n\nThe input follows this lark grammar:\nstart: x"
    assert cast("Object", patch["parameters"])["required"] == ["input"]


def test_what_a_tool_leaves_out() -> None:
    assert functions({"type": "function", "name": "f", "parameters": None, "strict": True}) == [
        {"name": "f", "parameters": {"type": "object", "properties": {}}, "strict": True}
    ]
    [custom] = functions({"type": "custom", "name": "c"})
    assert "description" not in custom


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("web_search", "web_search"),
        ("web_search_preview_2025_03_11", "web_search"),
        ("image_generation", "image_generation"),
        ("mcp", "mcp"),
        ("code_interpreter", "code_interpreter"),
    ],
)
def test_what_runs_at_the_provider_is_left_out_beside_tools_of_the_client_and_told(kind: str, name: str) -> None:
    assert names(LOOK, {"type": kind}) == ["look"]
    assert RESPONSES.translate(PATH, written(tools=[{"type": kind}, LOOK, {"type": kind}])).left_out == (name,)


def test_an_allowed_tool_that_runs_at_the_provider_is_left_out_beside_others() -> None:
    allowed = [{"type": "web_search"}, {"type": "function", "name": "look"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    assert names(*ALL, {"type": "web_search"}, tool_choice=choice) == ["look"]


def test_a_search_that_only_a_provider_could_run_is_refused() -> None:
    with pytest.raises(BadRequestError, match="'tool_search'"):
        names({"type": "tool_search"})


def test_a_namespace_in_a_namespace_is_refused() -> None:
    with pytest.raises(BadRequestError, match="'namespace'"):
        names({"type": "namespace", "name": "a", "tools": [NAMED]})


def test_names_stay_apart_and_short() -> None:
    flat = {**LOOK, "name": "mcp__eye__look"}
    long = {"type": "namespace", "name": "n" * 70, "tools": [LOOK, {**LOOK, "name": "see"}]}
    found = names(flat, NAMED, long, LOOK, LOOK)
    assert found[:3] == ["mcp__eye__look", "mcp__eye__look_2", "mcp__eye__see"]
    assert found[3:] == ["n" * NAME_CHARS_MAX, "n" * (NAME_CHARS_MAX - 2) + "_2", "look"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ({"type": "function", "name": "look"}, "look"),
        ({"type": "function", "name": "see", "namespace": "mcp__eye"}, "mcp__eye__see"),
        ({"type": "custom", "name": "patch"}, "patch"),
        ({"type": "tool_search"}, "tool_search"),
    ],
)
def test_choices(choice: object, expected: str) -> None:
    chat = said(tools=ALL, tool_choice=choice, parallel_tool_calls=False)
    wanted = expected if isinstance(choice, str) else {"type": "function", "function": {"name": expected}}
    assert (chat["tool_choice"], chat["parallel_tool_calls"]) == (wanted, False)


def test_only_allowed_tools_are_offered() -> None:
    allowed = [{"type": "custom", "name": "patch"}, {"type": "function", "name": "look"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": allowed}
    assert names(*ALL, tool_choice=choice) == ["look", "patch"]
    assert said(tools=ALL, tool_choice=choice)["tool_choice"] == "required"
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}
    with pytest.raises(BadRequestError, match="web_search"):
        RESPONSES.translate(PATH, written(tools=ALL, tool_choice=choice))


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("look", '{"a": "b"}', {"type": "function_call", "name": "look", "arguments": '{"a": "b"}'}),
        ("mcp__eye__see", "{}", {"type": "function_call", "name": "see", "namespace": "mcp__eye", "arguments": "{}"}),
        ("patch", '{"input": "a\\nb"}', {"type": "custom_tool_call", "name": "patch", "input": "a\nb"}),
        (
            "tool_search",
            '{"query": "x"}',
            {"type": "tool_search_call", "execution": "client", "arguments": {"query": "x"}},
        ),
        ("tool_search", "{", {"type": "tool_search_call", "execution": "client", "arguments": {}}),
        ("unknown", "", {"type": "function_call", "name": "unknown", "arguments": "{}"}),
    ],
)  # fmt: skip
def test_a_call_of_a_function_is_a_call_of_its_tool_there_and_back(
    function: str, arguments: str, expected: Object
) -> None:
    request = written(message("user", "hi"), stream=True, tools=ALL)
    stream = (tool_call(0, call_id="call_1", name=function, arguments=arguments), chunk(finish="tool_calls"))
    [item] = output_of(answered(*stream, request=request))
    assert item == {"id": item["id"], "call_id": "call_1", "status": "completed", **expected}

    chat = said(message("user", "hi"), item, tools=ALL)
    [again] = cast("list[dict[str, Object]]", cast("list[Object]", chat["messages"])[1]["tool_calls"])
    assert again["function"]["name"] == function
    said_again = json.loads(str(again["function"]["arguments"]))
    assert said_again == (json.loads(arguments) if arguments.endswith("}") else {})


def test_a_call_of_a_tool_that_is_no_longer_offered_keeps_its_name() -> None:
    chat = said(call("c", "see", namespace="mcp__eye"))
    assert "mcp__eye__see" in json.dumps(chat["messages"])
