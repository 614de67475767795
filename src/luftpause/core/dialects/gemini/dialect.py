"""Gemini as a dialect: what the LLM door asks of it. No engine speaks it by itself, so it is always translated."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.call_ids import CallIds
from luftpause.core.dialects.chat_said import text_in_chat_answer
from luftpause.core.dialects.dialect import Peek
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.gemini.errors import engine_refusal, error_body
from luftpause.core.dialects.gemini.from_chat import BLANK, Answer, StreamBack, WholeBack, failure_event
from luftpause.core.dialects.gemini.paths import called
from luftpause.core.dialects.gemini.request import read_request
from luftpause.core.dialects.gemini.spoken import utterances
from luftpause.core.dialects.gemini.to_chat import chat_request
from luftpause.core.dialects.gemini.tools import googles_tools
from luftpause.core.dialects.observe import BodyObserver, Observer, StreamObserver
from luftpause.core.dialects.request import (
    BadRequestError,
    as_array,
    as_object,
    is_text,
    offers_tools,
    parsed,
    read_members,
    reply_max_in,
)
from luftpause.core.dialects.said import Utterance
from luftpause.core.dialects.sse import EVENT_STREAM
from luftpause.core.model.ids import ToolCallId


class Gemini:
    """A `TranslatedDialect`. Its streams come as server-sent events or, where those are not asked for, as one array.

    `sign` is what its clients bear while there is nothing to say.
    """

    name: Final = "gemini"

    def __init__(self, *, events: bool, sign: bytes = BLANK) -> None:
        self._events = events
        self.ping: Final = sign
        self.stream_type: Final = EVENT_STREAM if events else b"application/json"

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`. The path says which model, and whether to stream."""
        asked = called(path)
        members = read_members(body, ("generationConfig",), "contents", *_TOOLS)
        config = members.get("generationConfig")
        reply_max = (
            reply_max_in(cast("dict[str, object]", config), "maxOutputTokens") if isinstance(config, dict) else 0
        )
        call_words = () if offers_tools(members, _TOOLS) else _CALLS
        if not with_identity:
            return Peek(model=asked.model, stream=asked.stream, reply_max=reply_max, call_words=call_words)
        tool_calls = _echoed(members.get("contents"))
        return Peek(
            model=asked.model, stream=asked.stream, tool_calls=tool_calls, reply_max=reply_max, call_words=call_words
        )

    def conversation(self, body: bytes) -> Sequence[Utterance]:
        """See `Dialect.conversation`."""
        try:
            return list(utterances(read_request(body)))
        except BadRequestError:
            return ()

    def error(self, failure: Failure) -> bytes:
        """See `Dialect.error`."""
        return error_body(failure.status, failure.message)

    def error_event(self, failure: Failure) -> bytes:
        """See `Dialect.error_event`."""
        body = self.error(failure)
        return failure_event(body) if self._events else b"[" + body + b"]"

    def reworded(self, status: int, body: bytes) -> bytes:
        """See `Dialect.reworded`."""
        del status, body
        return b""

    def observer(self, *, stream: bool) -> Observer:
        """See `Dialect.observer`. What an engine answers is Chat Completions."""
        return StreamObserver() if stream else BodyObserver()

    def text_in(self, document: bytes) -> str:
        """See `Dialect.text_in`. What an engine answers is Chat Completions."""
        return text_in_chat_answer(document)

    def translate(self, path: str, body: bytes, turn: str = "") -> "GeminiTranslation":
        """See `TranslatedDialect.translate`."""
        return GeminiTranslation(path, body, turn, events=self._events, sign=self.ping)


class GeminiTranslation:
    """A `Translation`."""

    def __init__(self, path: str, body: bytes, turn: str, *, events: bool, sign: bytes) -> None:
        asked, request = called(path), read_request(body)
        self.request: Final = msgspec.json.encode(chat_request(asked, request))
        self.left_out: Final = tuple(dict.fromkeys(googles_tools(request.tools or ())))
        self._ids = CallIds("call_", turn)
        config = request.generation_config
        thinking = None if config is None else config.thinking_config
        thoughts = thinking is not None and thinking.include_thoughts is True
        answer = Answer(self._ids, model=asked.model, thoughts=thoughts)
        self._back = StreamBack(answer, events=events, sign=sign) if asked.stream else WholeBack(answer)

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


class _Function(Struct):
    id: str | None = None


class _Part(Struct):
    call: _Function | None = msgspec.field(default=None, name="functionCall")
    response: _Function | None = msgspec.field(default=None, name="functionResponse")
    snake_call: _Function | None = msgspec.field(default=None, name="function_call")
    snake_response: _Function | None = msgspec.field(default=None, name="function_response")

    def functions(self) -> Iterator[_Function]:
        """Return what is there of them."""
        found = (self.call, self.response, self.snake_call, self.snake_response)
        return (each for each in found if each is not None)


class _Content(Struct):
    parts: list[_Part] | None = None


_CONTENTS: Final = msgspec.json.Decoder(list[_Content])
_MEMBERS: Final = ("functionCall", "functionResponse", "function_call", "function_response")
_CALLS: Final = tuple(f'"{name}"'.encode() for name in _MEMBERS)
_TOOLS: Final = ("tools",)


def _echoed(contents: object) -> tuple[ToolCallId, ...]:
    """Return the ids that the contents echo. What is odd in one of them is for its translation to judge."""
    ids = [function.id for function in _functions(contents)]
    return tuple(dict.fromkeys(ToolCallId(each) for each in ids if each and is_text(each)))


def _functions(contents: object) -> list[_Function]:
    """Return the calls and results."""
    conversation: object = contents
    if isinstance(contents, Raw):
        try:
            said = _CONTENTS.decode(contents)
            return [each for content in said for part in content.parts or () for each in part.functions()]
        except msgspec.DecodeError:
            conversation = parsed(bytes(contents).decode("utf-8", "surrogateescape"))
    messages = [as_array(as_object(content).get("parts")) for content in as_array(conversation)]
    parts = [as_object(part) for message in messages for part in message]
    return [_lenient(as_object(part.get(name))) for part in parts for name in _MEMBERS]


def _lenient(function: Mapping[str, object]) -> _Function:
    """Return what is sound of a call or result."""
    call_id = function.get("id")
    return _Function(call_id if isinstance(call_id, str) else None)
