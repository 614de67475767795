"""Anthropic Messages as a dialect: what the LLM door asks of it."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.anthropic_messages.errors import engine_refusal, error_body, error_event, reworded
from luftpause.core.dialects.anthropic_messages.from_chat import PING, StreamBack, WholeBack
from luftpause.core.dialects.anthropic_messages.observe import MessagesStreamObserver, observe_message, text_in_message
from luftpause.core.dialects.anthropic_messages.request import read_request
from luftpause.core.dialects.anthropic_messages.to_chat import chat_request
from luftpause.core.dialects.anthropic_messages.tools import server_tools
from luftpause.core.dialects.call_ids import CallIds
from luftpause.core.dialects.chat_said import said_in_messages
from luftpause.core.dialects.dialect import Peek
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.observe import BodyObserver, Observer
from luftpause.core.dialects.request import (
    as_array,
    as_object,
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


class AnthropicMessages:
    """A `TranslatedDialect`."""

    name: Final = "messages"
    ping: Final = PING
    stream_type: Final = EVENT_STREAM

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`. Serves `/v1/messages` and `/v1/messages/count_tokens`."""
        del path
        members = read_members(body, _WANTED, "messages", *_TOOLS)
        model, stream = model_in(members), stream_in(members)
        reply_max = reply_max_in(members, "max_tokens")
        call_words = () if offers_tools(members, _TOOLS) else _CALLS
        if not with_identity:
            return Peek(model=model, stream=stream, reply_max=reply_max, call_words=call_words)
        tool_calls = _echoed(members.get("messages"))
        return Peek(model=model, stream=stream, tool_calls=tool_calls, reply_max=reply_max, call_words=call_words)

    def conversation(self, body: bytes) -> Sequence[Utterance]:
        """See `Dialect.conversation`. Most of its clients name a session or echo ids; a plain chat does neither."""
        return said_in_messages(body)

    def error(self, failure: Failure) -> bytes:
        """See `Dialect.error`."""
        return error_body(failure)

    def error_event(self, failure: Failure) -> bytes:
        """See `Dialect.error_event`."""
        return error_event(error_body(failure))

    def reworded(self, status: int, body: bytes) -> bytes:
        """See `Dialect.reworded`."""
        return reworded(status, body)

    def observer(self, *, stream: bool) -> Observer:
        """See `Dialect.observer`."""
        return MessagesStreamObserver() if stream else BodyObserver(observe_message)

    def text_in(self, document: bytes) -> str:
        """See `Dialect.text_in`."""
        return text_in_message(document)

    def translate(self, path: str, body: bytes, turn: str = "") -> "MessagesTranslation":
        """See `TranslatedDialect.translate`."""
        del path
        return MessagesTranslation(body, turn)


class MessagesTranslation:
    """A `Translation`."""

    def __init__(self, body: bytes, turn: str) -> None:
        request = read_request(body)
        self.request: Final = msgspec.json.encode(chat_request(request))
        self.left_out: Final = tuple(dict.fromkeys(server_tools(request.tools or ())))
        thinking = request.thinking is not None and request.thinking.type != "disabled"
        stops = request.stop_sequences or ()
        way_back = StreamBack if request.stream else WholeBack
        self._ids = CallIds("toolu_", turn)
        self._back = way_back(self._ids, thinking=thinking, stops=stops)

    @property
    def failure(self) -> str:
        """See `WayBack.failure`."""
        return self._back.failure

    def feed(self, data: bytes) -> bytes:
        """See `Translation.feed`."""
        return self._back.feed(data)

    def end(self) -> bytes:
        """See `Translation.end`."""
        return self._back.end()

    def error(self, status: int, body: bytes) -> bytes:
        """See `Translation.error`."""
        return engine_refusal(status, body)

    def call_ids(self) -> tuple[ToolCallId, ...]:
        """See `Translation.call_ids`."""
        return self._ids.given()


_WANTED: Final = ("model", "stream", "max_tokens")

_TOOLS: Final = ("tools",)
_CALLS: Final = (b'"tool_use"', b'"tool_use_id"')


class _Block(Struct):
    type: str | None = None
    id: str | None = None
    tool_use_id: str | None = None


class _Message(Struct):
    content: str | list[_Block] | None = None


_MESSAGES: Final = msgspec.json.Decoder(list[_Message])


def _echoed(messages: object) -> tuple[ToolCallId, ...]:
    """Return the ids that the messages echo. What is odd in one of them is for the engine to judge, not for us."""
    conversation: object = messages
    if isinstance(messages, Raw):
        try:
            return tuple(_ids(_MESSAGES.decode(messages)))
        except msgspec.DecodeError:
            conversation = parsed(bytes(messages).decode("utf-8", "surrogateescape"))
    return tuple(_ids([_lenient(message) for message in as_array(conversation)]))


def _ids(messages: list[_Message]) -> dict[ToolCallId, None]:
    ids: dict[ToolCallId, None] = {}
    for message in messages:
        for block in message.content if isinstance(message.content, list) else ():
            echoed = block.id if block.type == "tool_use" else block.tool_use_id
            if echoed and block.type in ("tool_use", "tool_result") and is_text(echoed):
                ids[ToolCallId(echoed)] = None
    return ids


def _lenient(message: object) -> _Message:
    """Return what is sound of a message."""
    blocks = [as_object(block) for block in as_array(as_object(message).get("content"))]
    return _Message(
        content=[_Block(_text(block, "type"), _text(block, "id"), _text(block, "tool_use_id")) for block in blocks]
    )


def _text(members: Mapping[str, object], name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) else None
