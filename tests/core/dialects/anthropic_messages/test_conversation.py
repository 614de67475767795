import pytest

from core.dialects.anthropic_messages.requests import HELLO, assistant, messages_of, result, text, use, user
from luftpause.core.dialects.request import BadRequestError

SYSTEM = {"role": "system", "content": "later"}
PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize("system", ["Be short.", [text("Be short.")], [text("Be short."), text("")]])
def test_the_system_prompt_comes_first(system: object) -> None:
    assert messages_of(system=system)[0] == {"role": "system", "content": "Be short."}


@pytest.mark.parametrize("system", [None, "", []])
def test_an_empty_system_prompt_is_none(system: object) -> None:
    assert messages_of(system=system) == [HELLO]


def test_what_a_harness_tells_of_itself_is_no_instruction() -> None:
    system = [text("x-anthropic-billing-header: cc_version=1.2;"), text("A"), text("B")]

    assert messages_of(system=system)[0] == {"role": "system", "content": "A\n\nB"}


def test_leading_system_messages_join_the_system_prompt() -> None:
    said = messages_of(SYSTEM, HELLO, system="first")

    assert said == [{"role": "system", "content": "first\n\nlater"}, HELLO]


def test_a_later_system_message_stays_in_its_place_as_a_text_of_the_user() -> None:
    said = messages_of(HELLO, SYSTEM, assistant(text("yes")), {"role": "system", "content": [text("a"), text("b")]})

    assert said == [
        {"role": "user", "content": "hi\n\n<system-reminder>\nlater\n</system-reminder>"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "<system-reminder>\na\n\nb\n</system-reminder>"},
    ]


def test_a_system_message_between_a_call_and_its_result_follows_the_result() -> None:
    said = messages_of(HELLO, assistant(use("a")), SYSTEM, user(result("a", "seen")))

    assert [message["role"] for message in said] == ["user", "assistant", "tool", "user"]


def test_a_reminder_for_one_turn_is_gone_in_the_next() -> None:
    brief = {**SYSTEM, "clear_at": "next_user_message"}

    assert "later" in str(messages_of(HELLO, brief)[-1])
    assert messages_of(HELLO, brief, assistant(text("yes")), HELLO) == [
        HELLO,
        {"role": "assistant", "content": "yes"},
        HELLO,
    ]


def test_each_turn_begins_as_the_one_before() -> None:
    """What an engine has cached of a prompt stays good: nothing that was said is written differently later."""
    turns = [
        user(text("a"), text("b")),
        SYSTEM,
        assistant({"type": "thinking", "thinking": "hm"}, text("c"), use("1"), use("2")),
        user(result("2", "x"), result("1", [text("y"), PIXEL]), text("d")),
        SYSTEM,
        assistant(text("e")),
        HELLO,
    ]
    whole = messages_of(*turns, system="s")

    for end in (2, 3, 5, 6):
        begun = messages_of(*turns[:end], system="s")
        assert whole[: len(begun)] == begun, end


def test_texts_of_one_side_become_one_message() -> None:
    assert messages_of(HELLO, HELLO, assistant(text("a")), assistant(text("b"), use("1"))) == [
        {"role": "user", "content": "hi\n\nhi"},
        {
            "role": "assistant",
            "content": "a\n\nb",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
    ]


def test_parallel_results_answer_the_calls_before_the_user_goes_on() -> None:
    said = messages_of(
        HELLO, assistant(use("a", x=[1.0]), use("b")), user(text("first"), result("b", "2"), result("a", "1"))
    )

    assert said[1]["content"] == ""
    calls = said[1]["tool_calls"]
    assert isinstance(calls, list)
    assert [call["function"]["arguments"] for call in calls] == ['{"x":[1.0]}', "{}"]
    assert said[2:] == [
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "user", "content": "first"},
    ]


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (result("a"), ""),
        (result("a", "no such file", is_error=True), "Error: no such file"),
        (result("a", [text("one"), text("two")], is_error=False), "one\n\ntwo"),
        (result("a", [{"type": "tool_reference", "tool_name": "clock"}]), "The tool clock can be called now."),
    ],
)
def test_a_result_becomes_a_text(block: object, content: str) -> None:
    assert messages_of(HELLO, assistant(use("a")), user(block))[-1] == {
        "role": "tool",
        "tool_call_id": "a",
        "content": content,
    }


def test_pictures_of_a_result_are_shown_in_the_users_message() -> None:
    said = messages_of(HELLO, assistant(use("a")), user(result("a", [text("done"), PIXEL]), text("and?")))

    assert said[2]["content"] == "done\n\n(1 image(s), shown in the next user message)"
    assert said[3]["content"] == [
        {"type": "text", "text": "Image(s) of the tool result a:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": "and?"},
    ]


def test_thinking_goes_along_and_what_is_enciphered_does_not() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}

    said = messages_of(HELLO, assistant(thought, {"type": "redacted_thinking", "data": "x"}, text("yes")), HELLO)

    assert said[1] == {"role": "assistant", "content": "yes", "reasoning_content": "hm"}


def test_an_assistant_that_said_nothing_is_left_out() -> None:
    silent = assistant({"type": "redacted_thinking", "data": "x"}, text(""), {"type": "thinking", "thinking": ""})

    assert messages_of(HELLO, silent, HELLO) == [{"role": "user", "content": "hi\n\nhi"}]


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({"role": "tool", "content": "x"}, "the role 'tool'"),
        (assistant({"type": "connector_text"}), "'connector_text'"),
        (user({"type": "container_upload", "file_id": "f"}), "a file in a container"),
        ({"role": "system", "content": [PIXEL]}, "'image'"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(message: object, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        messages_of(HELLO, message)


@pytest.mark.parametrize(
    ("used", "found"), [("server_tool_use", "web_search_tool_result"), ("mcp_tool_use", "mcp_tool_result")]
)
def test_what_ran_at_anthropic_is_left_out_of_the_history(used: str, found: str) -> None:
    ran = {"type": used, "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    told = {"type": found, "tool_use_id": "srvtoolu_1", "content": []}
    assert messages_of(HELLO, assistant(ran, told, text("It rains.")), HELLO) == messages_of(
        HELLO, assistant(text("It rains.")), HELLO
    )
