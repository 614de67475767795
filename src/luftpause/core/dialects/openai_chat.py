"""The little of a Chat Completions request that routing needs; everything else is none of our business.

The body itself passes through byte for byte, so unknown fields, odd values and the order of keys stay untouched.
A repeated top-level key is refused, however it is written, since two readers could disagree about what it says.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, cast

import msgspec
from msgspec import Raw, Struct

from luftpause.core.model.ids import ModelName, ToolCallId

MODEL_CHARS_MAX: Final = 512
LONG_VALUE_BYTES: Final = 64
"""Longer values are cut out before keys are compared, so that comparing costs the same for long conversations."""


class BadRequestError(Exception):
    """The body is no request that could be routed. The message is for the client."""


class Peek(Struct, frozen=True, kw_only=True):
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
        BadRequestError: not a JSON object, a repeated key, or `model` or `stream` missing or of the wrong type.
    """
    try:
        members = _members(body)
    except RecursionError as error:
        raise BadRequestError("the request body is nested too deeply") from error
    model, stream = members.get("model"), members.get("stream")
    if "model" not in members:
        raise BadRequestError("the request names no model: `model` is missing")
    if not isinstance(model, str):
        raise BadRequestError(f"the request body does not fit: expected `str`, got `{_kind(model)}` - at `$.model`")
    if not isinstance(stream, bool | None):
        raise BadRequestError(f"the request body does not fit: expected `bool`, got `{_kind(stream)}` - at `$.stream`")
    if not model:
        raise BadRequestError("the request names no model: `model` is empty")
    if len(model) > MODEL_CHARS_MAX:
        raise BadRequestError(f"`model` is longer than {MODEL_CHARS_MAX} characters")
    if not _is_text(model):
        raise BadRequestError("`model` holds half of a surrogate pair")
    tool_calls = _echoed(members.get("messages")) if with_tool_calls else ()
    return Peek(model=ModelName(model), stream=stream is True, tool_calls=tool_calls)


def _members(body: bytes) -> Mapping[str, object]:
    """Return the members of the top-level object; `messages` as a Raw or, from an odd body, decoded."""
    try:
        raws = _DECODE_MEMBERS(body)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"the request body does not fit: {str(error).replace('Expected', 'expected')}") from error
    except msgspec.DecodeError as error:
        return _odd_members(body, str(error))
    _refuse_repeats(body, raws)
    members: dict[str, object] = {"messages": raws.get("messages")}
    try:
        for key in ("model", "stream"):
            if key in raws:
                members[key] = msgspec.json.decode(raws[key])
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the request body is not valid JSON: {error}") from error
    return members


_DECODE_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def _odd_members(body: bytes, why: str) -> Mapping[str, object]:
    """Read with the standard library what msgspec does not take: half of an escaped surrogate pair is legal JSON."""
    try:
        top = _parsed(body.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise BadRequestError(f"the request body is not valid JSON: {why}") from error
    if not isinstance(top, _Pairs):
        raise BadRequestError(f"the request body does not fit: expected `object`, got `{_kind(top)}`")
    return top.members()


class _Pairs(list[tuple[str, object]]):
    """A JSON object as it was written."""

    def members(self) -> dict[str, object]:
        members = dict(self)
        if len(members) < len(self):
            keys = [key for key, _ in self]
            repeated = next(key for key in keys if keys.count(key) > 1)
            raise BadRequestError(f"the request names {json.dumps(repeated)[:100]} more than once")
        return members


def _refuse_repeats(body: bytes, values: Mapping[str, Raw]) -> None:
    """Compare the keys of the top-level object, in a copy of the body without its long values.

    Each member has one colon, so where there are as many colons as different keys, no key is repeated; only where there
    are more (in texts, in nested objects, or for a repeated key) is the copy parsed.
    """
    parts: list[bytes] = []
    at = 0
    for value in values.values():
        text = bytes(value)
        if len(text) > LONG_VALUE_BYTES:
            found = body.find(text[:LONG_VALUE_BYTES], at)
            if found >= 0 and body.startswith(text, found):
                parts += (body[at:found], b"0")
                at = found + len(text)
    parts.append(body[at:])
    skeleton = b"".join(parts)
    if skeleton.count(b":") != len(values):
        pairs = _parsed(skeleton.decode("utf-8", "surrogateescape"))
        if isinstance(pairs, _Pairs):
            pairs.members()


def _parsed(text: str) -> object:
    """Parse with the standard library, objects as they were written.

    Raises:
        ValueError: not JSON.
    """
    return json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refuse_constant, parse_int=_zero)


def _zero(_digits: str) -> int:
    """Stand in for a number: which one it is does not matter here, and thousands of digits are slow to read."""
    return 0


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _is_text(value: str) -> bool:
    """Whether it can be written as UTF-8: half of a surrogate pair cannot."""
    return value.isascii() or not _SURROGATE.search(value)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _kind(value: object) -> str:
    return _JSON_NAMES.get(type(value), "object")


_JSON_NAMES: Final[dict[type, str]] = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    list: "array",
    type(None): "null",
}


def _echoed(messages: object) -> tuple[ToolCallId, ...]:
    """Return the ids that the messages echo. What is odd in one of them is for the engine to judge, not for us."""
    conversation: object = messages
    if isinstance(messages, Raw):
        try:
            return tuple(_ids(msgspec.json.decode(messages, type=list[_Message])))
        except msgspec.DecodeError:
            conversation = _parsed(bytes(messages).decode("utf-8", "surrogateescape"))
    return tuple(_ids([_lenient(message) for message in _as_array(conversation)]))


class _Call(Struct):
    id: str | None = None


class _Message(Struct):
    tool_call_id: str | None = None
    tool_calls: list[_Call] | None = None


def _ids(messages: list[_Message]) -> dict[ToolCallId, None]:
    ids: dict[ToolCallId, None] = {}
    for message in messages:
        for call in message.tool_calls or ():
            if call.id and _is_text(call.id):
                ids[ToolCallId(call.id)] = None
        if message.tool_call_id and _is_text(message.tool_call_id):
            ids[ToolCallId(message.tool_call_id)] = None
    return ids


def _lenient(message: object) -> _Message:
    """Return what is sound of a message."""
    members = _as_object(message)
    echoed = members.get("tool_call_id")
    ids = [_as_object(call).get("id") for call in _as_array(members.get("tool_calls"))]
    return _Message(
        tool_call_id=echoed if isinstance(echoed, str) else None,
        tool_calls=[_Call(id=call) for call in ids if isinstance(call, str)],
    )


def _as_object(value: object) -> Mapping[str, object]:
    return dict(value) if isinstance(value, _Pairs) else {}


def _as_array(value: object) -> Sequence[object]:
    return cast("list[object]", value) if isinstance(value, list) and not isinstance(value, _Pairs) else ()
