"""A whole reply out of streamed chunks: text, tool calls, finish reason and usage.

Engines differ in how they stream tool calls: in pieces or whole, with or without an index, an id or both, and some
give every call the same id. A call without an id of its own gets one, so that answers can name it. One that does not
stream says all of it in one chunk, with a message for a delta.

A reply is bounded: what a model says beyond that is not read, and the reply counts as cut there.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from luftpause.core.dialects.surrogates import read_mended
from luftpause.core.model.ids import ToolCallId
from luftpause.core.model.turns import Usage
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.ports.turns import TurnReply

DONE: Final = b"[DONE]"
CHARS_MAX: Final = 1_000_000
"""Characters of a reply, those of its calls included."""

CALLS_MAX: Final = 128
COUNT_MAX: Final = 2**53
"""More tokens than any turn takes; whatever reads our JSON reads whole numbers up to here."""

_ERROR_TEXT_MAX: Final = 500
_LENGTH: Final = "length"


class BrokenReplyError(Exception):
    """The stream is no reply: not JSON, an error event, or it ended before the reply did."""


class EmptyReplyError(BrokenReplyError):
    """The stream is whole, but there is neither text nor a call in it."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, object] | None = None


class _CallPiece(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(msgspec.Struct):
    type: str = ""
    text: object = None


class _Delta(msgspec.Struct):
    content: str | list[_Part] | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: object = None
    error: object = None


_CHUNKS: Final = msgspec.json.Decoder(_Chunk)


class _ErrorText(msgspec.Struct):
    message: str


class _ErrorBody(msgspec.Struct):
    error: _ErrorText


@dataclass(slots=True)
class _Slot:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ReplyAssembler:
    """Take the data of each event until it is full, then ask for the reply."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._slots: list[_Slot] = []
        self._finish = ""
        self._usage: Usage | None = None
        self._done = False
        self._chars = 0

    @property
    def is_full(self) -> bool:
        """Whether there is so much of the reply already that nothing more of it is taken."""
        return self._chars >= CHARS_MAX or len(self._slots) > CALLS_MAX

    def take(self, data: bytes) -> None:
        """Add one event's data.

        Raises:
            BrokenReplyError: it is no chunk, or says that the engine failed.
        """
        if data == DONE:
            self._done = True
            return
        try:
            chunk = read_mended(_CHUNKS, data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BrokenReplyError(f"the engine sent something that is no chunk: {error}") from error
        if chunk.error is not None:
            raise BrokenReplyError(error_text(data))
        if isinstance(chunk.usage, dict):
            self._usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            if choice.index == 0:
                self._take_choice(choice)

    def finished(self, *, may_call: bool = True) -> TurnReply:
        """Return the reply once the stream has ended. `may_call`: whether the model was offered tools.

        Raises:
            BrokenReplyError: the stream ended too early.
            EmptyReplyError: there is nothing in it, or nothing but calls of tools that are not offered.
        """
        if self.is_full:
            self._finish = _LENGTH
        if not self._done and not self._finish:
            raise BrokenReplyError("the engine closed the stream before the reply was complete")
        seen: set[str] = set()
        calls: list[ToolCall] = []
        for slot in self._slots[:CALLS_MAX]:
            call = slot.id if slot.id and slot.id not in seen else f"call_{secrets.token_urlsafe(16)}"
            seen.add(call)
            calls.append(ToolCall(call=ToolCallId(call), tool=slot.name, arguments="".join(slot.arguments)))
        message = AssistantMessage(text="".join(self._text), tool_calls=tuple(calls))
        if not message.text.strip() and not calls:
            raise EmptyReplyError(f"the engine's reply is empty, its finish reason {self._finish or 'not given'}")
        if not message.text.strip() and not may_call:
            raise EmptyReplyError("the engine's reply is empty but for calls of tools, and none are offered")
        return TurnReply(message=message, finish=self._finish, usage=self._usage)

    def _take_choice(self, choice: _Choice) -> None:
        if choice.finish_reason:
            self._finish = choice.finish_reason
        said = choice.delta or choice.message
        if said is None:
            return
        text = _text_in(said.content)
        if text:
            self._text.append(text)
            self._chars += len(text)
        for piece in said.tool_calls or ():
            slot = self._slot_for(piece)
            slot.id = slot.id or piece.id or ""
            if piece.function is not None:
                slot.name = slot.name or piece.function.name or ""
                slot.arguments.append(_written(piece.function.arguments))
                self._chars += len(slot.arguments[-1])

    def _slot_for(self, piece: _CallPiece) -> _Slot:
        """Find the call that a piece continues.

        A new id, or a name again, begins another; but some engines say name, id and index with every piece, and some
        give every call the same ones, so with an index the name only does after arguments that are complete.
        """
        known = [slot for slot in self._slots if slot.index == piece.index]
        if known:
            last = known[-1]
            other_id = bool(piece.id and last.id and piece.id != last.id)
            named_again = bool(piece.function and piece.function.name and last.name)
            if not other_id and not (named_again and (piece.index is None or _is_whole(last.arguments))):
                return last
        slot = _Slot(index=piece.index)
        self._slots.append(slot)
        return slot


def _text_in(content: str | list[_Part] | None) -> str:
    """Return what is said, without thoughts: some engines say it in parts."""
    if isinstance(content, list):
        return "".join(part.text for part in content if part.type == "text" and isinstance(part.text, str))
    return content or ""


def _written(arguments: str | dict[str, object] | None) -> str:
    """Return arguments as the text that they should be: some engines send the object itself."""
    return msgspec.json.encode(arguments).decode() if isinstance(arguments, dict) else arguments or ""


def _is_whole(arguments: list[str]) -> bool:
    try:
        msgspec.json.decode("".join(arguments))
    except (ValueError, RecursionError):
        return False
    return True


def error_text(body: bytes) -> str:
    """Return what an error body says, whatever its shape, cut to a readable length."""
    try:
        text = msgspec.json.decode(body, type=_ErrorBody).error.message
    except (msgspec.MsgspecError, RecursionError):
        text = body.decode("utf-8", "replace").strip()
    return text[:_ERROR_TEXT_MAX]


def _usage(told: Mapping[str, object]) -> Usage:
    """Return what an engine says that the turn took. What is no count says nothing: a turn is not lost for that."""
    details = told.get("prompt_tokens_details")
    return Usage(
        prompt_tokens=_count(told.get("prompt_tokens")) or 0,
        completion_tokens=_count(told.get("completion_tokens")) or 0,
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
    )


def _count(told: object) -> int | None:
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told <= COUNT_MAX:
        return None
    return int(told)
