from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, ModelName, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.reply_check import checked
from services.runtime.runtime_fakes import tool_spec

TWO = '<tool_call>{"name": "look", "arguments": {"at": "x"}}</tool_call>' * 2
REQUEST = TurnRequest(
    run=RunId("r"),
    parent=None,
    principal=ANONYMOUS_PRINCIPAL,
    caller=CallerId("c"),
    service_class=ServiceClass.INTERACTIVE,
    model=ModelName("m"),
    messages=(),
    tools=(tool_spec("look"),),
    parallel_tool_calls=True,
)


def said(text: str, finish: str = "stop") -> TurnReply:
    return TurnReply(message=AssistantMessage(text=text), finish=finish)


def asked(*arguments: str, finish: str = "tool_calls", text: str = "") -> TurnReply:
    calls = tuple(
        ToolCall(call=ToolCallId(f"c{place}"), tool="look", arguments=each) for place, each in enumerate(arguments)
    )
    return TurnReply(message=AssistantMessage(text=text, tool_calls=calls), finish=finish)


def test_calls_written_as_text_become_calls_with_ids_of_their_own() -> None:
    reply = checked(said(f"Let me look.\n{TWO}"), REQUEST)
    assert reply.message.text == "Let me look."
    assert [(each.tool, each.arguments, each.recovered_from) for each in reply.message.tool_calls] == [
        ("look", '{"at": "x"}', "hermes")
    ] * 2
    assert len({each.call for each in reply.message.tool_calls}) == 2


def test_a_run_that_may_not_call_at_once_has_the_first() -> None:
    reply = checked(said(TWO), replace(REQUEST, parallel_tool_calls=False))
    assert len(reply.message.tool_calls) == 1


def test_a_tool_may_be_called_by_its_long_name() -> None:
    reply = checked(said('{"name": "fake__look", "arguments": {"at": "x"}}'), REQUEST)
    assert reply.message.tool_calls[0].tool == "fake__look"


@pytest.mark.parametrize(
    ("reply", "request_"),
    [
        (said(TWO), replace(REQUEST, tools=())),
        (said(TWO), replace(REQUEST, tools=(tool_spec("write"),))),
        (said("It is there."), REQUEST),
        (said("It is ", finish="length"), REQUEST),
        (asked('{"at": "x"}', text=TWO), REQUEST),
        (asked('{"at": "x"}', text=TWO, finish="length"), REQUEST),
    ],
)
def test_anything_else_stays_as_it_is(reply: TurnReply, request_: TurnRequest) -> None:
    assert checked(reply, request_) == reply


@given(
    text=st.text(max_size=30) | st.just(TWO),
    arguments=st.lists(st.text(max_size=10), min_size=1, max_size=4),
    finish=st.sampled_from(["stop", "tool_calls", "", "content_filter"]),
)
def test_calls_that_the_engine_told_of_are_never_changed(text: str, arguments: list[str], finish: str) -> None:
    reply = asked(*arguments, text=text, finish=finish)
    assert checked(reply, REQUEST) is reply


@pytest.mark.parametrize("last", ["", " ", "{", '{"at": "x', "5x"])
def test_the_last_call_of_a_reply_that_was_cut_is_marked_if_it_is_not_whole(last: str) -> None:
    reply = checked(asked('{"at": "x', last, finish="length"), REQUEST)
    assert [each.cut for each in reply.message.tool_calls] == [False, True]
    assert [each.arguments for each in reply.message.tool_calls] == ['{"at": "x', last]


def test_a_call_in_text_that_was_cut_is_marked_too() -> None:
    reply = checked(said('<tool_call>{"name": "look", "arguments": {"at": "', finish="length"), REQUEST)
    assert [(each.tool, each.cut) for each in reply.message.tool_calls] == [("look", True)]
