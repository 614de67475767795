"""Which tool a name means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Tool as McpTool

from luftpause.adapters.tools_mcp.tools import name_tools
from luftpause.core.model.ids import ToolName
from luftpause.core.model.tool_names import TOOL_CHARS_MAX, canonical, tool_of


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("lookup", ("", "lookup")),
        ("get_weather", ("", "get_weather")),
        ("wiki__search", ("wiki", "search")),
        ("mcp__wiki__search", ("wiki", "search")),
        ("mcp__my_server__deep__search", ("my_server", "deep__search")),
        ("mcp__wiki", ("", "mcp__wiki")),
        ("__init__", ("", "__init__")),
        ("wiki__", ("", "wiki__")),
        ("mcp____search", ("", "mcp____search")),
        ("", ("", "")),
    ],
)
def test_a_name_tells_server_and_tool(name: str, tool: tuple[str, str]) -> None:
    assert tool_of(ToolName(name)) == tool
    assert tool_of(canonical(ToolName(name))) == tool


def test_a_tool_of_a_server_is_remembered_by_one_name_whoever_calls_it() -> None:
    assert canonical(ToolName("mcp__wiki__search")) == canonical(ToolName("wiki__search")) == "wiki__search"
    assert canonical(ToolName("mcp__mcp__search")) == "mcp__mcp__search"


def test_what_our_runtime_calls_a_tool_of_two_servers_tells_the_server() -> None:
    listed = McpTool(name="search", input_schema={"type": "object"})
    named = name_tools([("wiki", [listed]), ("web", [listed])])
    assert [tool_of(ToolName(each.name)) for each in named] == [("web", "search"), ("wiki", "search")]


@given(st.text() | st.text(alphabet="mcp_a").map("mcp__".__add__))
def test_any_text_is_a_tool_of_bounded_length(name: str) -> None:
    server, tool = tool_of(ToolName(name))
    assert (server, tool) == tool_of(canonical(ToolName(name)))
    assert len(canonical(ToolName(name))) <= TOOL_CHARS_MAX
    assert len(server) + len(tool) <= TOOL_CHARS_MAX
    long = name + "x" * TOOL_CHARS_MAX
    assert tool_of(ToolName(long)) == tool_of(ToolName(long[:TOOL_CHARS_MAX]))
