"""The table of forms: what the client wants, what comes, and whether it is said in other words."""

import msgspec
import pytest

from luftpause.core.dialects import ways_back
from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.chat_assembly import ChatAssembly, CompletionAssembly
from luftpause.core.dialects.dialect import UnfitAnswerError, WayBack
from luftpause.core.dialects.ways_back import AssembledTranslation, PiecedTranslation, way_back

BODY = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":%b}'
CALL = b'{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}'
WHOLE = b'{"choices":[{"message":{"tool_calls":[%b]},"finish_reason":"tool_calls"}]}' % CALL


def translation(*, stream: bool) -> WayBack:
    return AnthropicMessages().translate("/v1/messages", BODY % (b"true" if stream else b"false"), "t")


@pytest.mark.parametrize("stream", [True, False])
def test_what_comes_as_it_is_wanted_needs_nothing_more(stream: bool) -> None:
    back = translation(stream=stream)

    assert way_back(back, ChatAssembly, wants_stream=stream, is_stream=stream) is back
    assert way_back(None, ChatAssembly, wants_stream=stream, is_stream=stream) is None


def test_where_the_clients_words_are_the_engines_own_only_what_we_asked_for_is_changed_back() -> None:
    assert way_back(None, None, wants_stream=True, is_stream=False) is None
    assert way_back(None, None, wants_stream=False, is_stream=True) is None
    assert isinstance(way_back(None, CompletionAssembly, wants_stream=False, is_stream=True), CompletionAssembly)


def test_other_words_come_in_the_form_that_is_wanted() -> None:
    whole = way_back(translation(stream=False), None, wants_stream=False, is_stream=True)
    assert isinstance(whole, AssembledTranslation)
    assert whole.feed(b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n') == b""
    assert msgspec.json.decode(whole.end())["content"] == [{"type": "text", "text": "hi"}]

    stream = way_back(translation(stream=True), None, wants_stream=True, is_stream=False)
    assert isinstance(stream, PiecedTranslation)
    assert stream.feed(WHOLE) == b""
    events = stream.end()
    assert events.startswith(b"event: message_start")
    assert events.count(b"event: message_stop") == 1


@pytest.mark.parametrize("back", [translation(stream=True), None], ids=["in other words", "in its own"])
def test_the_calls_that_the_client_is_told_of_are_known(back: WayBack | None) -> None:
    pieced = PiecedTranslation(back)
    pieced.feed(WHOLE)
    pieced.end()

    assert list(pieced.call_ids()) == ["a"]


def test_a_refusal_is_told_in_the_clients_words() -> None:
    said = b'{"error":{"message":"no"}}'

    assert PiecedTranslation(None).error(400, said) == said
    assert msgspec.json.decode(PiecedTranslation(translation(stream=True)).error(400, said))["type"] == "error"


def test_what_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways_back, "ANSWER_BYTES_MAX", 4)
    pieced = PiecedTranslation(None)
    for _ in range(9):
        pieced.feed(b"12345")

    with pytest.raises(UnfitAnswerError, match="too long"):
        pieced.end()
    assert len(pieced._body) == 5
