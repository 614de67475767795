import pytest

from luftpause.core.model.ids import RunId, ToolCallId
from luftpause.core.runs.events import Origin
from luftpause.services.runtime.mcp_door.spawn_order import NAME_CHARS_MAX, origin_of, spawner_of


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, None),
        ({"claudecode/toolUseId": "toolu_1"}, Origin(tool_call=ToolCallId("toolu_1"))),
        ({"callId": "call_1", "threadId": "t_1"}, Origin(tool_call=ToolCallId("call_1"), thread="t_1")),
        ({"threadId": "t_1"}, Origin(thread="t_1")),
        ({"callId": 5, "threadId": ["t"]}, None),
        ({"callId": "x" * (NAME_CHARS_MAX + 1)}, None),
        ({"callId": "a\nb"}, None),
        ({"claudecode/toolUseId": "", "callId": "call_1"}, Origin(tool_call=ToolCallId("call_1"))),
    ],
)
def test_the_harness_says_which_tool_call_of_its_own_spawned(meta: dict[str, object], expected: Origin | None) -> None:
    assert origin_of(meta) == expected


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, None),
        ({"luftpause/idempotencyKey": "run_1/2/call_3"}, RunId("run_1")),
        ({"luftpause/idempotencyKey": f"run_1/2/{'x' * 9999}"}, RunId("run_1")),
        ({"luftpause/idempotencyKey": "some key"}, None),
        ({"luftpause/idempotencyKey": 5}, None),
    ],
)
def test_a_tool_call_of_a_sub_agent_says_whose_it_is(meta: dict[str, object], expected: RunId | None) -> None:
    assert spawner_of(meta) == expected


def test_what_may_become_a_header_is_ascii() -> None:
    assert origin_of({"callId": "caf\xe9", "threadId": "t_1"}) == Origin(thread="t_1")
