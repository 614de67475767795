"""Exchanges of real programs, and what becomes of them.

`native_*` and `chat_*` are answers of llama-server with the small model that the local extra brings; `sdk_*` are
requests of the official client as it sends them; `claude_code_*` are requests of Claude Code with its prompts replaced
by short ones of the same form.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from core.dialects.anthropic_messages.legal import told_by
from core.dialects.anthropic_messages.requests import MESSAGES, PATH, written
from luftpause.core.model.ids import ToolCallId

GOLDEN = Path(__file__).parent / "golden"
REQUESTS = sorted(path.name.removesuffix(".request.json") for path in GOLDEN.glob("*.request.json"))
ANSWERS = ("chat_text", "chat_tool", "chat_stop")


def request_of(name: str) -> bytes:
    return (GOLDEN / f"{name}.request.json").read_bytes()


def chat_of(name: str) -> dict[str, Any]:
    chat: dict[str, Any] = json.loads((GOLDEN / f"{name}.chat.json").read_bytes())
    return chat


def test_the_requests_are_there() -> None:
    assert len(REQUESTS) == 10


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_said_in_chat_completions(name: str) -> None:
    assert json.loads(MESSAGES.translate(PATH, request_of(name)).request) == chat_of(name)


def test_the_turns_of_claude_code_begin_as_the_ones_before() -> None:
    for earlier, later in (("first", "second"), ("first", "search"), ("search", "results")):
        begun, whole = (chat_of(f"claude_code_{name}") for name in (earlier, later))
        assert whole["messages"][: len(begun["messages"])] == begun["messages"]
        assert whole["tools"][: len(begun["tools"])] == begun["tools"]


def test_claude_code_is_recognised_by_the_ids_that_it_echoes() -> None:
    ids = MESSAGES.peek(PATH, request_of("claude_code_results"), with_identity=True).tool_calls

    assert ids == tuple(map(ToolCallId, ("toolu_lp00002", "toolu_lp00004", "toolu_lp00005")))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_comes_back_at_every_cut(name: str) -> None:
    sent = (GOLDEN / f"{name}.sse").read_bytes()
    expected = (GOLDEN / f"{name}.messages.sse").read_bytes()
    request = written(stream=True)

    for cut in range(len(sent) + 1):
        way = MESSAGES.translate(PATH, request)
        assert way.feed(sent[:cut]) + way.feed(sent[cut:]) + way.end() == expected, cut
    way = MESSAGES.translate(PATH, request)
    assert b"".join(way.feed(sent[at : at + 1]) for at in range(len(sent))) + way.end() == expected


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_answer_comes_back(name: str) -> None:
    way = MESSAGES.translate(PATH, written())

    assert way.feed((GOLDEN / f"{name}.json").read_bytes()) == b""
    assert json.loads(way.end()) == json.loads((GOLDEN / f"{name}.messages.json").read_bytes())


@pytest.mark.parametrize("name", ANSWERS)
def test_what_comes_back_is_seen_as_what_it_is(name: str) -> None:
    stream = (GOLDEN / f"{name}.messages.sse").read_bytes()
    told = told_by(stream)
    observer = MESSAGES.observer(stream=True)
    observer.feed(stream)
    seen = observer.observed()

    assert observer.done
    assert seen.finish == told.stop_reason
    assert list(seen.tool_calls) == [call_id for kind, _, call_id, _ in told.blocks if kind == "tool_use"]
    assert seen.usage is not None
    assert seen.usage.completion_tokens == told.usage["output_tokens"]


def test_refusals_of_a_real_engine() -> None:
    way = MESSAGES.translate(PATH, written())
    for name, beginning in (("chat_error", "'messages' is"), ("chat_too_long", "prompt is too long: request (20031")):
        error = json.loads(way.error(400, (GOLDEN / f"{name}.json").read_bytes()))["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"].startswith(beginning)
