import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.dialects.text_calls.transcripts import HARBOUR, PLAIN, TOOLS, TRANSCRIPTS
from luftpause.core.dialects.text_calls.recover import CALLS_MAX, TEXT_MAX, Recovered, recover

CALL = '<tool_call>{"name": "lookup", "arguments": {"query": "harbour of Bergen"}}</tool_call>'


def found(text: str, *, cut: bool = False) -> Recovered | None:
    return recover(text, TOOLS.__contains__, cut=cut)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_what_a_family_writes_is_found(name: str) -> None:
    reply, calls, text = TRANSCRIPTS[name]
    for cut in (False, True):
        recovered = found(reply, cut=cut)
        assert recovered is not None
        assert tuple((call.name, json.loads(call.arguments), call.form) for call in recovered.calls) == calls
        assert not any(call.cut for call in recovered.calls)
        assert recovered.text == text


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_no_call_stays_text(name: str) -> None:
    assert found(PLAIN[name]) is None


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_nothing_is_found_where_no_tools_are_offered(name: str) -> None:
    assert recover(TRANSCRIPTS[name].reply, frozenset().__contains__) is None


CUT = {
    "hermes": '<tool_call>\n{"name": "lookup", "arguments": {"query": "harbour of Ber',
    "hermes, a bracket too few": '<tool_call>{"name": "lookup", "arguments": {"query": "harbour of Bergen"}',
    "json": '{"name": "lookup", "parameters": {"query": "harbour of Ber',
    "llama": '<function=lookup>{"query": "harb',
    "python tag": '<|python_tag|>{"name": "lookup", "parameters": {"query": "har',
    "qwen-coder": "<tool_call>\n<function=lookup>\n<parameter=query>\nharbour of Ber",
    "mistral": '[TOOL_CALLS]lookup[ARGS]{"query": "har',
    "mistral, a list": '[TOOL_CALLS][{"name": "lookup", "arguments": {"query": "har',
    "deepseek": '<｜tool▁call▁begin｜>lookup<｜tool▁sep｜>{"query": "har',
    "kimi": '<|tool_call_begin|>functions.lookup:0<|tool_call_argument_begin|>{"query": "har',
    "invoke": '<invoke name="lookup"><parameter name="query">har',
    "invoke, between two": '<invoke name="lookup"><parameter name="query">har</parameter>',
    "harmony": '<|channel|>commentary to=functions.lookup<|message|>{"query": "har',
}


@pytest.mark.parametrize("form", CUT)
def test_a_call_that_was_cut_is_known_as_one_and_only_where_the_reply_was_cut(form: str) -> None:
    recovered = found("One moment. " * ("json" not in form) + CUT[form], cut=True)
    assert recovered is not None
    (call,) = recovered.calls
    assert (call.name, call.cut) == ("lookup", True)
    uncut = found(CUT[form])
    assert uncut is None or not any(call.cut for call in uncut.calls)


def test_whole_calls_before_one_that_was_cut_are_whole() -> None:
    recovered = found(CALL + CUT["hermes"], cut=True)
    assert recovered is not None
    assert [(call.name, call.cut) for call in recovered.calls] == [("lookup", False), ("lookup", True)]


def test_a_reply_has_no_more_calls_than_anybody_needs() -> None:
    recovered = found(CALL * (CALLS_MAX + 5))
    assert recovered is not None
    assert len(recovered.calls) == CALLS_MAX


def test_a_text_without_end_is_not_looked_at() -> None:
    assert found("x" * (TEXT_MAX - len(CALL)) + CALL) is not None
    assert found("x" * TEXT_MAX + CALL) is None


def test_after_many_that_were_none_the_rest_is_not_looked_at() -> None:
    assert found("<tool_call>" * 8 + CALL) is not None
    assert found("<tool_call>" * 9 + CALL) is None


def test_a_name_may_come_with_its_namespace() -> None:
    recovered = found('{"name": "functions.lookup", "arguments": {}}')
    assert recovered is not None
    assert recovered.calls[0].name == "lookup"


PIECES = (
    "<tool_call>", "</tool_call>", "<function=lookup>", "</function>", "<parameter=query>", "</parameter>",
    "<|python_tag|>", "[TOOL_CALLS]", "[ARGS]", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", '<invoke name="lookup">', "</invoke>",
    '<parameter name="query">', "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<think>", "</think>",
    "```json\n", "```", "`", "\n", " ", "> ", "~~~", "lookup", "(", ")", "query=", '"', "'", "{", "}", "[", "]", ":",
    ",", ";", "\\", '{"name": "lookup", "arguments": ', '{"query": "x"}', "{'name': 'lookup'}", "function",
    "functions.", "<|channel|>commentary to=", "<|message|>", "<|channel|>analysis", "<|end|>", "3", "-1.5e3", "true",
    "None", "\ud800",
)  # fmt: skip


@given(pieces=st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=60), cut=st.booleans())
def test_any_text_is_read_and_what_is_found_is_sound(pieces: list[str], cut: bool) -> None:
    text = "".join(pieces)
    recovered = found(text, cut=cut)
    if recovered is None:
        return
    assert text.startswith(recovered.text)
    assert 1 <= len(recovered.calls) <= CALLS_MAX
    assert any(call.name in TOOLS for call in recovered.calls)
    assert cut or not any(call.cut for call in recovered.calls)


@given(
    arguments=st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=3,
    )
)
def test_any_arguments_come_back_as_they_were(arguments: dict[str, object]) -> None:
    written = json.dumps(arguments)
    # What ends a thought ends it wherever it stands: engines leave out the beginning that their template wrote.
    assume(re.search(r"think|THINK|reason|channel", written) is None)
    call = json.dumps({"name": "lookup", "arguments": arguments})
    for reply in (
        call,
        f"<tool_call>{call}</tool_call>",
        f"[TOOL_CALLS][{call}]",
        f"[TOOL_CALLS]lookup[ARGS]{written}",
        f"<function=lookup>{written}</function>",
        f"<｜tool▁call▁begin｜>lookup<｜tool▁sep｜>{written}<｜tool▁call▁end｜>",
        f"```json\n{call}\n```",
    ):
        recovered = found(reply)
        assert recovered is not None, reply
        assert [json.loads(each.arguments) for each in recovered.calls] == [arguments]


def test_what_is_found_in_a_long_reply_stands_at_its_end() -> None:
    recovered = found("It rains. " * 1000 + CALL)
    assert recovered is not None
    assert (len(recovered.text), json.loads(recovered.calls[0].arguments)) == (9999, HARBOUR)
