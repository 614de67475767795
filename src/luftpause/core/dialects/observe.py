"""What a Chat Completions answer says about its turn, read beside the stream without altering a byte.

Streams are searched for a few markers and only an event that holds one is parsed. A marker is a key, a colon, at
most one space and the first character of a value that means something (`"usage": {`): inside a JSON string its
quotes would be escaped, so text that a model writes cannot be mistaken for one. What cannot be read is not
reported: judging the engine's answer is the client's affair.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.sse import EventCutter, data_of, split_events
from luftpause.core.model.ids import ToolCallId
from luftpause.core.model.turns import Usage

BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longest JSON answer that is kept to be looked at; of a longer one nothing is reported."""

TOOL_CALLS_MAX: Final = 256
"""More tool-call ids than these in one answer are not kept."""

ERROR_CHARS_MAX: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What an answer said.

    Attributes:
        finish: the first finish reason given, "" without one.
        usage: the last usage given.
        tool_calls: ids of all choices in order of appearance, without repeats.
        error: the engine's error object as it stands in the answer, "" without one.
    """

    finish: str = ""
    usage: Usage | None = None
    tool_calls: tuple[ToolCallId, ...] = ()
    error: str = ""


class Observer(Protocol):
    """Looks at an answer as it passes."""

    first_token_seen: bool
    """Bytes of an answer were fed."""

    done: bool
    """The answer said that it is over, so its client may go on before the connection shows it."""

    def feed(self, data: bytes) -> None:
        """Look at the next piece, cut anywhere."""
        ...

    def observed(self) -> Observed:
        """Return what was seen up to now."""
        ...


class StreamObserver:
    """Looks at an event stream. The result does not depend on how the stream was cut into pieces."""

    __slots__ = ("_cutter", "_found", "done", "first_token_seen")

    def __init__(self) -> None:
        self.first_token_seen = False
        self.done = False
        self._cutter = EventCutter()
        self._found = Observed()

    def feed(self, data: bytes) -> None:
        """Look at the next piece, cut anywhere."""
        if data:
            self.first_token_seen = True
            block = self._cutter.feed(data)
            if block:
                self._take_block(block)

    def observed(self) -> Observed:
        """Return what was seen up to now, an unfinished last event included if it can be read."""
        found = self._found
        rest = self._cutter.rest()
        for event in _telling_events(rest) if rest else ():
            found = _take(found, data_of(event))
        return found

    def _take_block(self, block: bytes) -> None:
        for event in _telling_events(block):
            document = data_of(event)
            if document == _DONE:
                self.done = True
            else:
                self._found = _take(self._found, document)


class BodyObserver:
    """Looks at a JSON answer that comes as one document."""

    __slots__ = ("_pieces", "_size", "done", "first_token_seen")

    def __init__(self) -> None:
        self.first_token_seen = False
        self.done = False
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Keep the next piece, cut anywhere."""
        if data:
            self.first_token_seen = True
            self._size += len(data)
            if self._size <= BODY_BYTES_MAX:
                self._pieces.append(data)
            else:
                self._pieces.clear()

    def observed(self) -> Observed:
        """Return what the document says; nothing while it is not whole."""
        return observe_body(b"".join(self._pieces))


def observe_body(body: bytes) -> Observed:
    """Return what a whole JSON answer says; nothing of one that is not an answer."""
    return _take(Observed(), body)


class _Details(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _ToolCall(Struct):
    id: str | None = None


class _Message(Struct):
    tool_calls: list[_ToolCall] | None = None


class _Choice(Struct):
    finish_reason: str | None = None
    delta: _Message | None = None
    message: _Message | None = None


class _Answer(Struct):
    choices: list[_Choice] | None = None
    usage: Raw = Raw(b"null")
    error: Raw = Raw(b"null")


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_USAGE: Final = msgspec.json.Decoder(_Usage | None)
_DONE: Final = b"[DONE]"
_MARKERS: Final = (
    b'usage":{',
    b'usage": {',
    b'finish_reason":"',
    b'finish_reason": "',
    b'tool_calls":[',
    b'tool_calls": [',
    b'"error":',
    _DONE,
)
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)


def _telling_events(block: bytes) -> list[bytes]:
    """Return the events that hold a marker, in order. Only what is near a hit is looked at twice."""
    if b"\r" in block:
        return [event for event in split_events(block) if any(marker in event for marker in _MARKERS)]
    hits: dict[int, int] = {}
    for marker in _MARKERS:
        at = block.find(marker)
        while at >= 0:
            before = block.rfind(b"\n\n", 0, at)
            end = block.find(b"\n\n", at)
            end = end if end >= 0 else len(block)
            hits[before + 2 if before >= 0 else 0] = end
            at = block.find(marker, end)
    return [event for start in sorted(hits) for event in split_events(block[start : hits[start]])]


def _take(found: Observed, document: bytes) -> Observed:
    """Return what was found before together with what this document says."""
    try:
        answer = _ANSWER.decode(document)
    except _UNREADABLE:
        return found
    choices = answer.choices or ()
    return Observed(
        finish=found.finish or next((choice.finish_reason for choice in choices if choice.finish_reason), ""),
        usage=_usage(answer.usage) or found.usage,
        tool_calls=_add_ids(found.tool_calls, choices),
        error=found.error or _error(answer.error),
    )


def _usage(raw: Raw) -> Usage | None:
    try:
        usage = _USAGE.decode(raw)
    except _UNREADABLE:
        return None
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    return Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=None if details is None else details.cached_tokens,
    )


def _add_ids(known: tuple[ToolCallId, ...], choices: Iterable[_Choice]) -> tuple[ToolCallId, ...]:
    new: dict[ToolCallId, None] = {}
    for choice in choices:
        for message in (choice.delta, choice.message):
            for call in (message.tool_calls if message is not None else None) or ():
                if call.id:
                    new[ToolCallId(call.id)] = None
    return tuple(dict.fromkeys((*known, *new)))[:TOOL_CALLS_MAX] if new else known


def _error(raw: Raw) -> str:
    text = bytes(raw).decode("utf-8", "replace").strip()
    return "" if text in ("", "null") else text[:ERROR_CHARS_MAX]
