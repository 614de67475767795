import pytest

from core.dialects.anthropic_messages.requests import HELLO, MESSAGES, PATH, assistant, result, said, use, user, written
from luftpause.core.dialects.request import BadRequestError

SCHEMA = {"type": "object", "properties": {"x": {"type": "number"}}}


def tool(name: str, **members: object) -> dict[str, object]:
    return {"name": name, "input_schema": SCHEMA, **members}


def names(*conversation: object, tools: list[dict[str, object]]) -> list[str]:
    functions = said(*conversation, tools=tools).get("tools", [])
    assert isinstance(functions, list)
    return [each["function"]["name"] for each in functions]


def reference(name: str) -> dict[str, object]:
    return {"type": "tool_reference", "tool_name": name}


def system(kind: str, tool: object) -> dict[str, object]:
    return {"role": "system", "content": [{"type": kind, "tool": tool}]}


def found(*wanted: str) -> tuple[object, ...]:
    """A conversation in which a tool search of the client's found tools."""
    return HELLO, assistant(use("s", "search")), user(result("s", [reference(name) for name in wanted]))


def test_a_tool_becomes_a_function() -> None:
    dressed = tool("look", type="custom", description="Looks.", strict=True, cache_control={"type": "ephemeral"})

    assert said(tools=[dressed, {"name": "bare"}])["tools"] == [
        {
            "type": "function",
            "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": True},
        },
        {"type": "function", "function": {"name": "bare", "parameters": {"type": "object", "properties": {}}}},
    ]


def test_a_schema_goes_on_as_it_was_written() -> None:
    schema = b'{"type":"object","$x":[1.0, -0.0],  "properties":{"b":{"const":12345678901234567890123},"a":{}}}'
    body = written(tools=[{"name": "look", "input_schema": "SCHEMA"}]).replace(b'"SCHEMA"', schema)

    assert schema in MESSAGES.translate(PATH, body).request


TOOLS = [tool("late", defer_loading=True), tool("now"), tool("other", defer_loading=True)]


def test_a_deferred_tool_is_offered_once_it_was_found_and_comes_last() -> None:
    assert names(tools=TOOLS) == ["now"]
    assert names(*found("other"), tools=TOOLS) == ["now", "other"]
    assert names(*found("other"), *found("late", "other", "unknown"), tools=TOOLS) == ["now", "other", "late"]


@pytest.mark.parametrize("kind", ["tool_search_tool_regex_20251119", "tool_search_tool_bm25_20251119"])
def test_where_the_server_would_search_every_tool_is_offered(kind: str) -> None:
    assert names(tools=[{"type": kind, "name": "search"}, *TOOLS]) == ["late", "now", "other"]


def test_system_messages_add_and_remove_tools() -> None:
    add_late = system("tool_addition", {"type": "tool_reference", "name": "late"})
    drop_now = system("tool_removal", {"type": "tool_reference", "name": "now"})
    define = system("tool_addition", {"type": "tool_definition", "definition": tool("new")})

    assert names(HELLO, add_late, drop_now, define, tools=TOOLS) == ["late", "new"]


@pytest.mark.parametrize(
    ("chosen", "choice"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "now"}, {"type": "function", "function": {"name": "now"}}),
    ],
)
def test_choices(chosen: object, choice: object) -> None:
    assert said(tools=TOOLS, tool_choice=chosen)["tool_choice"] == choice


def test_one_call_at_a_time() -> None:
    assert (
        said(tools=TOOLS, tool_choice={"type": "auto", "disable_parallel_tool_use": True})["parallel_tool_calls"]
        is False
    )
    assert "parallel_tool_calls" not in said(tools=TOOLS, tool_choice={"type": "auto"})


def test_a_choice_among_no_tools_is_left_out() -> None:
    assert not said(tools=[], tool_choice={"type": "auto", "disable_parallel_tool_use": True}).keys() & {
        "tools",
        "tool_choice",
        "parallel_tool_calls",
    }


WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def test_what_runs_at_anthropic_is_left_out_beside_tools_of_the_client_and_told() -> None:
    tools = [WEB_SEARCH, *TOOLS, {"type": "web_fetch_20260209", "name": "web_fetch"}, WEB_SEARCH]
    assert said(tools=tools) == said(tools=TOOLS)
    translation = MESSAGES.translate(PATH, written(tools=tools))
    assert translation.left_out == ("web_search", "web_fetch")
    assert MESSAGES.translate(PATH, written(tools=TOOLS)).left_out == ()


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "no other tools than web_search"),
        ({"tools": [WEB_SEARCH], "tool_choice": {"type": "tool", "name": "web_search"}}, "no other tools"),
        ({"tools": [*TOOLS, WEB_SEARCH], "tool_choice": {"type": "tool", "name": "web_search"}}, "'web_search'"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "'bash_20250124'"),
        ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "late"}}, "'late', which the request does not offer"),
        ({"tools": TOOLS, "tool_choice": {"type": "odd"}}, "'odd'"),
        ({"tool_choice": {"type": "tool", "name": "look"}}, "'look'"),
    ],
)
def test_what_cannot_be_offered_is_refused_by_name(members: dict[str, object], named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        said(**members)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"type": "mcp_toolset_reference", "server_name": "s"}, "'mcp_toolset_reference'"),
        ({"type": "tool_definition", "definition": {"type": "web_search_20250305"}}, "'tool_definition'"),
        (None, "names no tool"),
    ],
)
def test_changes_that_cannot_be_made_are_refused_by_name(changed: object, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        said(HELLO, system("tool_addition", changed), tools=TOOLS)
