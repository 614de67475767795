"""What the tools say they return is what they return, and a schema that others can read."""

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp_types import Tool

from luftpause.core.model.ids import ModelName, RunId, ToolCallId
from luftpause.core.runs.budgets import Used
from luftpause.core.runs.events import Limits
from luftpause.core.runs.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from luftpause.core.runs.view import BudgetView
from luftpause.ports.decisions import Decision
from luftpause.services.runtime.mcp_door import answers, run_schemas
from luftpause.services.runtime.mcp_door.tool_list import TOOLS, tools_with
from luftpause.services.runtime.orders import RuntimeSettings, Transcript
from services.runtime.mcp_door.test_questions import VIEW
from services.runtime.runtime_fakes import tool_spec

BUDGET = BudgetView(limits=Limits(tokens=5), used=Used(tokens=6, tool_calls=1, seconds=2), exceeded="tokens")
PART = Transcript(
    first=3,
    total=9,
    messages=(
        SystemMessage(text="s"),
        UserMessage(text="u"),
        AssistantMessage(text="", tool_calls=(ToolCall(call=ToolCallId("c"), tool="t", arguments="{}"),)),
        ToolMessage(call=ToolCallId("c"), text="r"),
    ),
)


def fits(value: object, schema: dict[str, object]) -> bool:
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(value)
    return True


@pytest.mark.parametrize("tool", tools_with(RuntimeSettings()), ids=lambda tool: tool.name)
def test_every_schema_is_one_and_every_name_is_allowed(tool: Tool) -> None:
    Draft202012Validator.check_schema(tool.input_schema)
    assert tool.output_schema is not None
    Draft202012Validator.check_schema(tool.output_schema)
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", tool.name)
    assert tool.description
    assert tool.annotations is not None


def test_a_run_has_the_shape_that_is_promised() -> None:
    shown: dict[str, Any] = answers.run(VIEW)
    assert fits(shown, run_schemas.RUN)
    assert shown["pendingApproval"] == {
        "call": "c1",
        "tool": "delete",
        "arguments": {"path": "/x"},
        "reason": "it destroys",
    }
    assert fits({**answers.runs([VIEW]), "omitted": 0}, run_schemas.SOME_RUNS)


def test_a_budget_tells_what_was_set_what_is_used_and_what_was_too_much() -> None:
    assert answers.budget(BUDGET) == {
        "limits": {"tokens": 5},
        "used": {"tokens": 6, "toolCalls": 1, "seconds": 2},
        "exceeded": "tokens",
    }


def test_a_conversation_is_told_with_the_places_of_its_messages() -> None:
    shown: dict[str, Any] = answers.transcript(RunId("run_1"), PART)
    assert fits(shown, run_schemas.TRANSCRIPT)
    assert [(each["place"], each["role"]) for each in shown["messages"]] == [
        (3, "system"),
        (4, "user"),
        (5, "assistant"),
        (6, "tool"),
    ]
    assert shown["messages"][2]["toolCalls"] == [{"call": "c", "tool": "t", "arguments": "{}"}]


def test_tools_and_decisions_have_their_shapes() -> None:
    assert fits({"tools": [answers.tool(tool_spec("look"))]}, run_schemas.TOOL_LIST)
    decided = Decision(label="a", probabilities={"a": 0.5}, unscored=["b"], model=ModelName("m"))
    assert fits(answers.decision(decided), run_schemas.DECISION)


def test_arguments_that_are_no_json_are_shown_as_written() -> None:
    assert answers.read_arguments('{"a": 1}') == {"a": 1}
    assert answers.read_arguments("{oops") == "{oops"


def test_what_is_set_stands_in_the_copies_and_not_in_the_list() -> None:
    changed = {tool.name: tool for tool in tools_with(RuntimeSettings(max_tokens=7, await_max_s=9.0))}
    assert changed["run"].input_schema["properties"]["maxTokens"]["default"] == 7
    assert changed["await"].input_schema["properties"]["timeout"]["maximum"] == 9.0
    plain = {tool.name: tool for tool in TOOLS}
    assert "default" not in plain["run"].input_schema["properties"]["maxTokens"]
