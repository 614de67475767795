"""Which requests offer no tools and answer none, in every dialect."""

import json

import pytest

from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.dialect import Dialect, is_aside
from luftpause.core.dialects.gemini.dialect import Gemini
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.openai_responses.dialect import OpenAiResponses

HI = {"role": "user", "content": "hi"}
SPEAKS_OF_IT = {"role": "user", "content": 'what do "tools", "tool_calls" and "call_id" mean?'}
TITLE = {"model": "m", "messages": [SPEAKS_OF_IT]}
ASKED = {"model": "m", "input": [SPEAKS_OF_IT]}
CHAT, MESSAGES, RESPONSES, GEMINI = OpenAiChat(), AnthropicMessages(), OpenAiResponses(), Gemini(events=False)
CHAT_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "4"}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "4"}]}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "4"}
SAID = {"role": "user", "parts": [{"text": 'what is "functionCall"?'}]}
CALLED = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"is": "4"}}}]}
TOOL = {"name": "look"}

ASIDES: dict[str, tuple[Dialect, object]] = {
    "chat": (CHAT, TITLE),
    "chat, no tools in it": (CHAT, {**TITLE, "tools": []}),
    "chat, null": (CHAT, {**TITLE, "tools": None}),
    "messages": (MESSAGES, TITLE),
    "messages, no tools in it": (MESSAGES, {**TITLE, "tools": []}),
    "responses": (RESPONSES, ASKED),
    "responses, no tools in it": (RESPONSES, {**ASKED, "tools": []}),
    "gemini": (GEMINI, {"contents": [SAID]}),
    "half a pair": (CHAT, {**TITLE, "messages": [{"role": "user", "content": "\ud83d"}]}),
}
TURNS: dict[str, tuple[Dialect, object]] = {
    "chat, tools": (CHAT, {**TITLE, "tools": [TOOL]}),
    "chat, functions": (CHAT, {**TITLE, "functions": [TOOL]}),
    "chat, a result": (CHAT, {**TITLE, "messages": [HI, CHAT_RESULT]}),
    "chat, an old call": (CHAT, {**TITLE, "messages": [{"role": "assistant", "tool_calls": [{"id": "c1"}]}, HI]}),
    "messages, tools": (MESSAGES, {**TITLE, "tools": [TOOL]}),
    "messages, a result": (MESSAGES, {**TITLE, "messages": [HI, RESULT]}),
    "responses, tools": (RESPONSES, {**ASKED, "tools": [TOOL]}),
    "responses, a result": (RESPONSES, {**ASKED, "input": [OUTPUT]}),
    "responses, from where it was": (RESPONSES, {**ASKED, "previous_response_id": "resp_1"}),
    "gemini, tools": (GEMINI, {"contents": [SAID], "tools": [{"functionDeclarations": [TOOL]}]}),
    "gemini, a result": (GEMINI, {"contents": [SAID, CALLED]}),
    "half a pair, tools": (CHAT, {**TITLE, "messages": [{"role": "user", "content": "\ud83d"}], "tools": [TOOL]}),
}


def aside(asked: tuple[Dialect, object], *, with_identity: bool) -> bool:
    dialect, members = asked
    path, body = "/v1beta/models/m:generateContent" if dialect is GEMINI else "/v1", json.dumps(members).encode()
    return is_aside(dialect.peek(path, body, with_identity=with_identity), body)


@pytest.mark.parametrize("with_identity", [False, True])
@pytest.mark.parametrize("name", ASIDES)
def test_what_offers_no_tools_and_tells_of_no_call_is_aside(name: str, with_identity: bool) -> None:
    assert aside(ASIDES[name], with_identity=with_identity)


@pytest.mark.parametrize("with_identity", [False, True])
@pytest.mark.parametrize("name", TURNS)
def test_what_offers_tools_or_tells_of_a_call_is_a_turn_of_its_run(name: str, with_identity: bool) -> None:
    assert not aside(TURNS[name], with_identity=with_identity)
