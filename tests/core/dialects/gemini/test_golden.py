"""Real exchanges: what the google-genai package and Gemini CLI asked, what a llama-server answered.

`NAME.request.json` is what the client sent, its long texts cut and most tools left out; `NAME.chat.json` is what the
engine is asked. The engine's answers lie beside the Messages dialect; what is told of them is here.
"""

import json

import pytest

from core.dialects.gemini.exchanges import ARRAY, ENGINES, EVENTS, GOLDEN, STREAM_PATH, WHOLE_PATH, Object, translated
from core.dialects.gemini.legal import told_by, told_by_array, told_by_events
from luftpause.core.model.ids import ToolCallId

REQUESTS = sorted(path.name.removesuffix(".request.json") for path in GOLDEN.glob("*.request.json"))
ANSWERS = ("chat_text", "chat_tool", "chat_stop")


def request_of(name: str) -> bytes:
    return (GOLDEN / f"{name}.request.json").read_bytes()


def chat_of(name: str) -> Object:
    chat: Object = json.loads((GOLDEN / f"{name}.chat.json").read_bytes())
    return chat


def test_the_requests_are_there() -> None:
    assert len(REQUESTS) == 6


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_said_in_chat_completions(name: str) -> None:
    path = STREAM_PATH if "cli" in name else WHOLE_PATH
    assert json.loads(EVENTS.translate(path, request_of(name)).request) == chat_of(name)


def test_each_turn_begins_as_the_one_before() -> None:
    for earlier, later in (
        ("gemini_cli_first", "gemini_cli_results"),
        ("gemini_cli_results", "gemini_cli_again"),
        ("sdk_first", "sdk_result"),
    ):
        begun, whole = chat_of(earlier), chat_of(later)
        assert whole["messages"][: len(begun["messages"])] == begun["messages"]
        assert whole["tools"] == begun["tools"]


def test_both_are_recognised_by_the_ids_of_the_calls_that_they_echo() -> None:
    seen = EVENTS.peek(STREAM_PATH, request_of("gemini_cli_results"), with_identity=True)
    assert seen.tool_calls == tuple(map(ToolCallId, ("call_ae33d60f6d4f470556b9ecb6", "call_20be71d0631dbd6b0ffe053b")))
    seen = EVENTS.peek(WHOLE_PATH, request_of("sdk_no_ids"), with_identity=True)
    assert seen.tool_calls == tuple(map(ToolCallId, ("call_41812a15fa0946e93aa8d975", "call_dbf4488df9f459e19b81cef7")))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_comes_back_at_every_cut(name: str) -> None:
    sent = (ENGINES / f"{name}.sse").read_bytes()
    events = (GOLDEN / f"{name}.events.sse").read_bytes()
    array = (GOLDEN / f"{name}.array.json").read_bytes().rstrip()

    for cut in range(len(sent) + 1):
        assert translated([sent[:cut], sent[cut:]]) == events, cut
        assert translated([sent[:cut], sent[cut:]], dialect=ARRAY) == array, cut
    bytes_of_it = [sent[at : at + 1] for at in range(len(sent))]
    assert translated(bytes_of_it) == events
    assert told_by_events(events) == told_by_array(array)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_answer_comes_back(name: str) -> None:
    whole = json.loads(translated([(ENGINES / f"{name}.json").read_bytes()], stream=False))

    assert whole == json.loads((GOLDEN / f"{name}.whole.json").read_bytes())
    assert told_by([whole]).finish in ("STOP", "MAX_TOKENS")


def test_a_refusal_of_a_real_engine() -> None:
    way = EVENTS.translate(WHOLE_PATH, request_of("sdk_first"))
    error = json.loads(way.error(400, (ENGINES / "chat_too_long.json").read_bytes()))["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert "exceeds the available context size" in error["message"]
