import pytest

from luftpause.core.dialects.openai_responses.output_items import CallItem, OutputItem, TextItem
from luftpause.core.dialects.openai_responses.tools import Tool, ToolKind

TEXT, THOUGHT = TextItem(0, "msg_1", reasoning=False), TextItem(0, "rs_1", reasoning=True)


def call(kind: ToolKind, namespace: str = "") -> CallItem:
    return CallItem(2, "fc_1", "call_1", Tool(kind, "look", namespace))


def kinds(item: OutputItem, *pieces: str) -> list[str]:
    events = [*item.opened(), *[event for piece in pieces for event in item.grown(piece)], *item.closed("completed")]
    return [kind.removeprefix("response.") for kind, _ in events]


@pytest.mark.parametrize(("item", "name"), [(TEXT, "output_text"), (THOUGHT, "reasoning_text")])
def test_a_text_has_one_part(item: TextItem, name: str) -> None:
    assert kinds(item, "a", "b") == [
        "output_item.added",
        "content_part.added",
        f"{name}.delta",
        f"{name}.delta",
        f"{name}.done",
        "content_part.done",
        "output_item.done",
    ]


@pytest.mark.parametrize(
    ("kind", "pieces", "expected"),
    [
        (ToolKind.FUNCTION, ['{"a"', ": 1}"], ["function_call_arguments.delta"] * 2 + ["function_call_arguments.done"]),
        (ToolKind.FUNCTION, [], ["function_call_arguments.delta", "function_call_arguments.done"]),
        (ToolKind.CUSTOM, ['{"input"', ': "x', '"}'], ["custom_tool_call_input.delta", "custom_tool_call_input.done"]),
        (ToolKind.CUSTOM, ["raw ", "text"], ["custom_tool_call_input.delta", "custom_tool_call_input.done"]),
        (ToolKind.CUSTOM, [], ["custom_tool_call_input.done"]),
        (ToolKind.SEARCH, ['{"a": 1}'], []),
    ],
)
def test_the_events_of_calls(kind: ToolKind, pieces: list[str], expected: list[str]) -> None:
    assert kinds(call(kind), *pieces) == ["output_item.added", *expected, "output_item.done"]


def test_a_call_is_whole_when_its_arguments_are() -> None:
    item = call(ToolKind.FUNCTION)
    told = []
    for piece in ("", '{"a": ', "[1]", "}", " "):
        item.grown(piece)
        told.append(item.is_whole())
    assert told == [False, False, False, True, True]


def test_an_item_in_progress_says_nothing_yet() -> None:
    item = call(ToolKind.FUNCTION, "mcp__x")
    item.grown('{"a": 1}')
    assert item.item("in_progress") == {
        "id": "fc_1",
        "type": "function_call",
        "status": "in_progress",
        "call_id": "call_1",
        "name": "look",
        "namespace": "mcp__x",
        "arguments": "",
    }
    assert item.item("incomplete")["arguments"] == '{"a": 1}'


@pytest.mark.parametrize(
    ("arguments", "text"),
    [('{"input": "x"}', "x"), ('{"a": 1, "input": "x"}', "x"), ('"x"', "x"), ("x", "x"), ('{"a": 1}', '{"a": 1}')],
)
def test_a_custom_tool_gets_the_text_however_the_model_wrapped_it(arguments: str, text: str) -> None:
    item = call(ToolKind.CUSTOM)
    item.grown(arguments)
    item.closed("completed")
    assert item.item("completed")["input"] == text
