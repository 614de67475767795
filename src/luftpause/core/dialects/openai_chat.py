"""The little of a Chat Completions request that routing needs; everything else is none of our business.

The body itself passes through byte for byte, so unknown fields, odd values and the order of keys stay untouched.
A repeated top-level `model` is refused, since two readers of it could disagree about where the turn goes. Keys
written with escapes are not looked for: an engine that reads them as a second `model` is served what it reads.
"""

import json
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Struct

from luftpause.core.model.ids import ModelName, ToolCallId

MODEL_CHARS_MAX: Final = 512
_MODEL_KEY: Final = b'"model"'


class BadRequestError(Exception):
    """The body is no request that could be routed. The message is for the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """What a request says about where it should go.

    Attributes:
        tool_calls: ids that the conversation echoes, in order of appearance, without repeats; empty unless asked for.
    """

    model: ModelName
    stream: bool
    tool_calls: tuple[ToolCallId, ...] = ()


def peek(body: bytes, *, with_tool_calls: bool) -> Peek:
    """Read what routing needs from a request body.

    Args:
        body: the request body as it came.
        with_tool_calls: also read the echoed tool-call ids, at about twice the cost.

    Raises:
        BadRequestError: not a JSON object, or `model` or `stream` missing, repeated or of the wrong type.
    """
    if not with_tool_calls:
        return _peek(body, ())
    try:
        conversation = _CONVERSATION.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _peek(body, ())  # the engine judges odd messages; what routing needs may still be sound
    return _checked(body, conversation, _echoed(conversation))


class _Call(Struct):
    id: str | None = None


class _Message(Struct):
    tool_call_id: str | None = None
    tool_calls: list[_Call] | None = None


class _Request(Struct):
    model: str
    stream: bool | None = None


class _Conversation(_Request):
    messages: list[_Message] | None = None


_REQUEST: Final = msgspec.json.Decoder(_Request)
_CONVERSATION: Final = msgspec.json.Decoder(_Conversation)


def _peek(body: bytes, tool_calls: tuple[ToolCallId, ...]) -> Peek:
    try:
        request = _REQUEST.decode(body)
    except msgspec.ValidationError as error:
        raise BadRequestError(_validation_message(str(error))) from error
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the request body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise BadRequestError("the request body is nested too deeply") from error
    return _checked(body, request, tool_calls)


def _validation_message(found: str) -> str:
    if "missing required field `model`" in found:
        return "the request names no model: `model` is missing"
    return f"the request body does not fit: {found}".replace("Expected", "expected")


def _checked(body: bytes, request: _Request, tool_calls: tuple[ToolCallId, ...]) -> Peek:
    model = request.model
    if not model:
        raise BadRequestError("the request names no model: `model` is empty")
    if len(model) > MODEL_CHARS_MAX:
        raise BadRequestError(f"`model` is longer than {MODEL_CHARS_MAX} characters")
    if body.find(_MODEL_KEY) != body.rfind(_MODEL_KEY) and _repeats_model(body):
        raise BadRequestError("the request names `model` more than once")
    return Peek(model=ModelName(model), stream=request.stream is True, tool_calls=tool_calls)


def _repeats_model(body: bytes) -> bool:
    """Return whether the outermost object holds the key twice. Slow, and rarely asked: nested keys count before."""
    repeats = 0

    def count(pairs: list[tuple[str, object]]) -> None:
        nonlocal repeats  # objects close from the inside out, so the outermost is counted last
        repeats = sum(key == "model" for key, _ in pairs)

    try:
        json.loads(body, object_pairs_hook=count)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the request body is not valid JSON: {error}") from error
    return repeats > 1


def _echoed(conversation: _Conversation) -> tuple[ToolCallId, ...]:
    ids: dict[ToolCallId, None] = {}
    for message in conversation.messages or ():
        for call in message.tool_calls or ():
            if call.id:
                ids[ToolCallId(call.id)] = None
        if message.tool_call_id:
            ids[ToolCallId(message.tool_call_id)] = None
    return tuple(ids)
