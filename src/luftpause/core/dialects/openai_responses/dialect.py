"""Responses: the little of a request that routing needs, and the way into everything else of this dialect."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.chat_said import said_in_responses
from luftpause.core.dialects.dialect import Peek, Translation
from luftpause.core.dialects.failures import Failure, openai_error
from luftpause.core.dialects.observe import BodyObserver, Observer
from luftpause.core.dialects.openai_responses.chat_request import say_in_chat
from luftpause.core.dialects.openai_responses.errors import failure_event, reworded
from luftpause.core.dialects.openai_responses.observe import (
    ResponsesStreamObserver,
    observe_response,
    text_in_response,
)
from luftpause.core.dialects.openai_responses.translation import BodyTranslation, StreamTranslation
from luftpause.core.dialects.request import (
    as_array,
    as_object,
    cache_key_in,
    is_text,
    model_in,
    offers_tools,
    parsed,
    read_members,
    reply_max_in,
    stream_in,
)
from luftpause.core.dialects.said import Utterance
from luftpause.core.dialects.sse import EVENT_STREAM
from luftpause.core.model.ids import ToolCallId


class OpenAiResponses:
    """A `TranslatedDialect`."""

    name: Final = "responses"
    # No event: the stream helpers of the OpenAI packages give up on any event before `response.created`.
    ping: Final = b": waiting\n\n"
    stream_type: Final = EVENT_STREAM

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`."""
        del path
        members = read_members(body, _WANTED, "input", *_TOOLS)
        model, stream = model_in(members), stream_in(members)
        reply_max = reply_max_in(members, "max_output_tokens")
        call_words = () if offers_tools(members, _TOOLS) else _CALLS
        if not with_identity:
            return Peek(model=model, stream=stream, reply_max=reply_max, call_words=call_words)
        return Peek(
            model=model,
            stream=stream,
            tool_calls=_echoed(members.get("input")),
            cache_key=cache_key_in(members),
            reply_max=reply_max,
            call_words=call_words,
        )

    def conversation(self, body: bytes) -> Sequence[Utterance]:
        """See `Dialect.conversation`. Most of its clients name a session or echo ids; a plain chat does neither."""
        return said_in_responses(body)

    def error(self, failure: Failure) -> bytes:
        """See `Dialect.error`."""
        return openai_error(failure)

    def error_event(self, failure: Failure) -> bytes:
        """See `Dialect.error_event`."""
        return failure_event(failure)

    def reworded(self, status: int, body: bytes) -> bytes:
        """See `Dialect.reworded`."""
        return reworded(status, body)

    def observer(self, *, stream: bool) -> Observer:
        """See `Dialect.observer`."""
        return ResponsesStreamObserver() if stream else BodyObserver(observe_response)

    def text_in(self, document: bytes) -> str:
        """See `Dialect.text_in`."""
        return text_in_response(document)

    def translate(self, path: str, body: bytes, turn: str = "") -> Translation:
        """See `TranslatedDialect.translate`."""
        del path
        asked = say_in_chat(body)
        return StreamTranslation(asked, turn) if asked.stream else BodyTranslation(asked, turn)


_WANTED: Final = ("model", "stream", "prompt_cache_key", "max_output_tokens")

_TOOLS: Final = ("tools",)
_CALLS: Final = (b'"call_id"', b'"previous_response_id"')


class _Item(Struct):
    call_id: str | None = None


def _echoed(given: object) -> tuple[ToolCallId, ...]:
    """Return the ids that the items echo. What is odd in one of them is for the engine to judge, not for us."""
    items: object = given
    if isinstance(given, Raw):
        try:
            return _ids([item.call_id for item in msgspec.json.decode(given, type=list[_Item])])
        except msgspec.DecodeError:
            items = parsed(bytes(given).decode("utf-8", "surrogateescape"))
    return _ids([as_object(item).get("call_id") for item in as_array(items)])


def _ids(found: list[str | None] | list[object]) -> tuple[ToolCallId, ...]:
    ids = [ToolCallId(each) for each in found if isinstance(each, str) and each and is_text(each)]
    return tuple(dict.fromkeys(ids))
