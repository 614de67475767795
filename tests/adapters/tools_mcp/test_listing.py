import logging

import pytest
from mcp_types import JSONRPCResponse

from luftpause.adapters.tools_mcp.listing import tidy

GOOD = {"name": "good", "inputSchema": {"type": "object"}}


def tidied(*tools: object) -> object:
    message = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": list(tools), "nextCursor": "2"})
    tidy(message, "s")
    assert message.result["nextCursor"] == "2"
    return message.result["tools"]


@pytest.mark.parametrize(
    "bad",
    [
        5,
        {"inputSchema": {"type": "object"}},
        {"name": 5, "inputSchema": {"type": "object"}},
        {"name": "no schema"},
        {"name": "no object", "inputSchema": {"type": "string"}},
        {"name": "odd properties", "inputSchema": {"type": "object", "properties": 5}},
    ],
)
def test_one_odd_tool_is_left_out_and_logged_and_the_others_stay(bad: object, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert tidied(bad, GOOD) == [GOOD]
    assert [entry.message for entry in caplog.records] == ["tool_left_out"]


def test_small_slips_are_mended() -> None:
    assert tidied(
        {"name": "good", "inputSchema": {"$schema": {"x": 1}, "properties": {}}},
        {"name": "plain", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}},
    ) == [
        {"name": "good", "inputSchema": {"type": "object", "properties": {}}},
        {"name": "plain", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}},
    ]


def test_nobody_judges_an_answer_by_the_schema_of_its_tool() -> None:
    assert tidied({**GOOD, "outputSchema": {"type": "object", "$ref": "#"}}) == [GOOD]


def test_what_is_no_listing_stays_as_it_is() -> None:
    message = JSONRPCResponse(jsonrpc="2.0", id=1, result={"content": [], "tools": "none"})
    tidy(message, "s")
    tidy("no message", "s")
    assert message.result == {"content": [], "tools": "none"}
