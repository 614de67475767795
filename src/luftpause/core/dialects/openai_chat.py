"""Chat Completions: the little of a request that routing needs, and how its answers are looked at and written.

The body itself passes through byte for byte: nothing is parsed beyond the peek.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.chat_said import said_in_chat, text_in_chat_answer
from luftpause.core.dialects.dialect import Peek
from luftpause.core.dialects.failures import Failure, openai_error
from luftpause.core.dialects.observe import BodyObserver, Observer, StreamObserver
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


class OpenAiChat:
    """A `Dialect`."""

    name: ClassVar[str] = "chat"
    ping = b": waiting\n\n"
    stream_type = EVENT_STREAM

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`. Echoed tool-call ids cost about as much again as the rest."""
        del path
        members = read_members(body, _WANTED, "messages", *_TOOLS)
        model, stream = model_in(members), stream_in(members)
        reply_max = reply_max_in(members, "max_completion_tokens", "max_tokens")
        call_words = () if offers_tools(members, _TOOLS) else _CALLS
        if not with_identity:
            return Peek(model=model, stream=stream, reply_max=reply_max, call_words=call_words)
        return Peek(
            model=model,
            stream=stream,
            tool_calls=_echoed(members.get("messages")),
            cache_key=cache_key_in(members),
            reply_max=reply_max,
            call_words=call_words,
        )

    def conversation(self, body: bytes) -> Sequence[Utterance]:
        """See `Dialect.conversation`."""
        return said_in_chat(body)

    def error(self, failure: Failure) -> bytes:
        """See `Dialect.error`."""
        return openai_error(failure)

    def error_event(self, failure: Failure) -> bytes:
        """See `Dialect.error_event`."""
        return b"data: " + openai_error(failure) + b"\n\n"

    def reworded(self, status: int, body: bytes) -> bytes:
        """See `Dialect.reworded`."""
        del status, body
        return b""

    def observer(self, *, stream: bool) -> Observer:
        """See `Dialect.observer`."""
        return StreamObserver() if stream else BodyObserver()

    def text_in(self, document: bytes) -> str:
        """See `Dialect.text_in`."""
        return text_in_chat_answer(document)


_WANTED: Final = ("model", "stream", "prompt_cache_key", "max_completion_tokens", "max_tokens")

_TOOLS: Final = ("tools", "functions")
_CALLS: Final = (b'"tool_calls"', b'"tool_call_id"', b'"function_call"')


def _echoed(messages: object) -> tuple[ToolCallId, ...]:
    """Return the ids that the messages echo. What is odd in one of them is for the engine to judge, not for us."""
    conversation: object = messages
    if isinstance(messages, Raw):
        try:
            return tuple(_ids(msgspec.json.decode(messages, type=list[_Message])))
        except msgspec.DecodeError:
            conversation = parsed(bytes(messages).decode("utf-8", "surrogateescape"))
    return tuple(_ids([_lenient(message) for message in as_array(conversation)]))


class _Call(Struct):
    id: str | None = None


class _Message(Struct):
    tool_call_id: str | None = None
    tool_calls: list[_Call] | None = None


def _ids(messages: list[_Message]) -> dict[ToolCallId, None]:
    ids: dict[ToolCallId, None] = {}
    for message in messages:
        for call in message.tool_calls or ():
            if call.id and is_text(call.id):
                ids[ToolCallId(call.id)] = None
        if message.tool_call_id and is_text(message.tool_call_id):
            ids[ToolCallId(message.tool_call_id)] = None
    return ids


def _lenient(message: object) -> _Message:
    """Return what is sound of a message."""
    members = as_object(message)
    echoed = members.get("tool_call_id")
    ids = [as_object(call).get("id") for call in as_array(members.get("tool_calls"))]
    return _Message(
        tool_call_id=echoed if isinstance(echoed, str) else None,
        tool_calls=[_Call(id=call) for call in ids if isinstance(call, str)],
    )
