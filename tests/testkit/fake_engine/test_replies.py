"""What the fake engine answers."""

import json
from dataclasses import replace

import msgspec
import pytest

from luftpause.testkit.fake_engine.conversations import Chat
from luftpause.testkit.fake_engine.replies import Reply, UnknownToolError, plan_reply, reply_id
from luftpause.testkit.fake_engine.settings import Settings

SETTINGS = Settings(seed=7)


def tool(name: str) -> dict[str, object]:
    query = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return {"type": "function", "function": {"name": name, "parameters": query}}


TOOLS = [tool("lookup"), tool("deep_search")]
CALLED = {
    "role": "assistant",
    "tool_calls": [{"id": "c1", "function": {"name": "lookup", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "it rises in the hills"}


def chat(task: str, *after: object, **more: object) -> Chat:
    return msgspec.convert({"model": "m", "messages": [{"role": "user", "content": task}, *after], **more}, Chat)


def reply(one: Chat, settings: Settings = SETTINGS, number: int = 1) -> Reply:
    return plan_reply(one, settings, "conversation", number)


def names(planned: Reply) -> list[str]:
    return [call.function.name for call in planned.message().tool_calls or ()]


def test_a_text_reply_mentions_the_task_and_has_the_length_asked_for() -> None:
    planned = reply(chat("Where does the Danube rise? [tokens:30]"))
    assert planned.message().text.startswith('On "Where does the Danube rise?": ')
    assert len(planned.deltas) == len(planned.message().text.split()) == 30
    assert planned.finish_reason == "stop"
    assert len(reply(chat("x")).deltas) == SETTINGS.reply_tokens


def test_a_reply_after_tools_mentions_what_they_said() -> None:
    planned = reply(chat("Where?", CALLED, RESULT, tools=TOOLS))
    assert "it rises in the hills" in planned.message().text


def test_a_capped_reply_ends_for_its_length() -> None:
    planned = reply(chat("x", max_tokens=3))
    assert (len(planned.deltas), planned.finish_reason) == (3, "length")
    assert reply(chat("x [tokens:3]", max_tokens=3)).finish_reason == "stop"
    assert len(reply(chat("x", max_tokens=0)).deltas) == 1


@pytest.mark.parametrize(
    ("one", "called"),
    [
        (chat("t"), []),
        (chat("t", tools=TOOLS), ["lookup"]),
        (chat("t", tools=[]), []),
        (chat("t", tools=TOOLS, tool_choice="none"), []),
        (chat("t", tools=TOOLS, tool_choice="auto"), ["lookup"]),
        (chat("t", CALLED, RESULT, tools=TOOLS), []),
        (chat("t", CALLED, RESULT, tools=TOOLS, tool_choice="required"), ["deep_search"]),
        (
            chat("t", tools=TOOLS, tool_choice={"type": "function", "function": {"name": "deep_search"}}),
            ["deep_search"],
        ),
        (chat("t [tools:0]", tools=TOOLS), []),
        (chat("t [tools:2]", CALLED, RESULT, tools=TOOLS), ["deep_search"]),
        (chat("t [tools:2]", CALLED, RESULT, CALLED, RESULT, tools=TOOLS), []),
        (chat("t [parallel:3]", tools=TOOLS), ["lookup", "deep_search", "lookup"]),
        (chat("t [parallel:3]", tools=TOOLS, parallel_tool_calls=False), ["lookup"]),
        (chat("t [tool:search]", tools=TOOLS), ["deep_search"]),
        (chat("t [tool:unheard_of]", tools=TOOLS), ["lookup"]),
        (chat("t", CALLED, RESULT, {"role": "user", "content": "again"}, tools=TOOLS), ["lookup"]),
    ],
)
def test_tools_are_called_when_offered_and_asked_for(one: Chat, called: list[str]) -> None:
    planned = reply(one)
    assert names(planned) == called
    assert planned.finish_reason == ("tool_calls" if called else "stop")


def test_the_engine_says_how_many_rounds_where_the_task_does_not() -> None:
    again = chat("t", CALLED, RESULT, tools=TOOLS)
    assert names(reply(again, replace(SETTINGS, tool_rounds=2))) == ["deep_search"]
    assert names(reply(chat("t", tools=TOOLS), replace(SETTINGS, tool_rounds=0))) == []


def test_a_named_tool_that_is_not_offered_is_an_error() -> None:
    named = {"type": "function", "function": {"name": "nope"}}
    with pytest.raises(UnknownToolError, match="'nope'"):
        reply(chat("t", tools=TOOLS, tool_choice=named))


def test_arguments_come_in_pieces_and_make_json_of_the_tasks_words() -> None:
    planned = reply(chat("Where does the Danube rise? [parallel:2]", tools=TOOLS))
    calls = planned.message().tool_calls or []
    assert json.loads(calls[0].function.arguments) == {"query": "Where does the Danube rise?"}
    assert len(planned.deltas) > 10
    assert calls[0].function.arguments != calls[1].function.arguments


def test_an_argument_that_the_task_names_is_what_it_says_where_the_tool_takes_it() -> None:
    planned = reply(chat("Look [tools:1] [arg:query=the {Danube}] [arg:depth=3]", tools=TOOLS))
    made = planned.message().tool_calls
    assert made is not None
    assert json.loads(made[0].function.arguments) == {"query": "the [Danube]"}


def test_call_ids_are_unique_even_when_a_conversation_comes_twice() -> None:
    one = chat("t [parallel:8]", tools=TOOLS)
    ids = [call.id for number in (1, 2) for call in reply(one, number=number).message().tool_calls or ()]
    assert len(set(ids)) == 16
    assert reply_id(7, "conversation", 1) != reply_id(7, "conversation", 2)


def test_the_same_seed_gives_the_same_reply_and_another_seed_another() -> None:
    one, called = chat("t"), chat("t", tools=TOOLS)
    assert reply(one) == reply(one)
    assert reply(called) == reply(called)
    assert reply(one) != reply(one, replace(SETTINGS, seed=8))
    assert reply(called) != reply(called, replace(SETTINGS, seed=8))


SCHEMA = {"type": "object", "properties": {"river": {"type": "string"}, "km": {"type": "integer"}}, "required": ["km"]}


@pytest.mark.parametrize(
    ("response_format", "value"),
    [
        ({"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}}, {"km": 1}),
        ({"type": "json_schema", "json_schema": {"name": "r", "schema": {"enum": ["a", "b"]}}}, "a"),
        ({"type": "json_object"}, {}),
    ],
)
def test_a_reply_in_a_wanted_format_is_json_that_fits(response_format: object, value: object) -> None:
    planned = reply(chat("Danube [tokens:3]", response_format=response_format))
    assert json.loads(planned.message().text) == value
    assert planned.finish_reason == "stop"


def test_tools_come_ahead_of_a_wanted_format_and_a_cap_cuts_it() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}}
    assert names(reply(chat("t", tools=TOOLS, response_format=wanted))) == ["lookup"]
    capped = reply(chat("t", response_format=wanted, max_tokens=1))
    assert (len(capped.deltas), capped.finish_reason) == (1, "length")


def test_a_format_that_is_text_or_not_given_changes_nothing() -> None:
    assert reply(chat("t", response_format={"type": "text"})) == reply(chat("t", response_format=None))
    with pytest.raises(msgspec.ValidationError, match="type"):
        chat("t", response_format={"type": "yaml"})


def test_usage_is_told_unless_the_task_forbids_it() -> None:
    assert reply(chat("t")).counted
    assert not reply(chat("t [no-usage]")).counted


def test_a_reply_that_dies_or_stalls_does_so_in_the_middle() -> None:
    assert reply(chat("[die] [tokens:10]")).dies_after == 5
    assert reply(chat("[stall] [tokens:10]")).stalls_after == 5
    assert reply(chat("[die] [tokens:1]")).dies_after == 1
    assert (reply(chat("t")).dies_after, reply(chat("t")).stalls_after) == (None, None)


def test_calls_may_be_written_as_text() -> None:
    planned = reply(chat("x [tools:1] [as-text:hermes]", tools=TOOLS))
    assert planned.message().text == '<tool_call>\n{"name": "lookup", "arguments": {"query": "x"}}\n</tool_call>'
    assert (names(planned), planned.finish_reason) == ([], "stop")
    assert reply(chat("x [tools:0] [as-text:hermes]", tools=TOOLS)).message().text.startswith('On "x":')
