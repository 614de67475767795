"""One document of a Chat Completions answer, whole or a chunk, as engines write them.

It smooths what they do differently in one: where reasoning stands, content in parts, the one call of the days before
tools, arguments that are no text, errors where an answer was expected.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.observe import error_said
from luftpause.core.model.turns import Usage

_NULL: Final = Raw(b"null")


class Function(Struct):
    """What is called, or a piece of it."""

    name: str | None = None
    arguments: Raw = _NULL


class Call(Struct):
    """A tool call, or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class _Part(Struct):
    type: str = ""
    text: str | None = None
    thinking: object = None


class Message(Struct):
    """What is said, or a piece of it."""

    content: object = None
    reasoning_content: object = None
    reasoning: object = None
    refusal: object = None
    tool_calls: list[Call] | None = None
    function_call: Function | None = None

    def texts(self) -> Iterator[tuple[str, bool]]:
        """Yield what it says in order, and whether that is reasoning."""
        reasoning = _text_of(self.reasoning_content) or _text_of(self.reasoning)
        if reasoning:
            yield reasoning, True
        yield from _texts(self.content)
        yield from _texts(self.refusal)

    def calls(self) -> Sequence[Call]:
        """Return its tool calls. Engines that know the one call from before tools say it beside them, or instead."""
        if self.tool_calls or self.function_call is None:
            return self.tool_calls or ()
        return (Call(function=self.function_call),)


class Choice(Struct):
    """One answer of those that a document may hold."""

    index: int | None = None
    delta: Message | None = None
    message: Message | None = None
    finish_reason: str | None = None
    stop_reason: object = None
    matched_stop: object = None


class Chunk(Struct):
    """A document. What stands in an error's, or may be anything, is read on its own."""

    id: str | None = None
    model: str | None = None
    kind: str | None = msgspec.field(name="object", default=None)
    choices: list[Choice] | None = None
    usage: Raw = _NULL
    error: Raw = _NULL
    message: Raw = _NULL
    code: Raw = _NULL


class Used(Struct, frozen=True):
    """Tokens of a turn; `reasoning_tokens`: how many of its completion's, None where the engine does not say."""

    usage: Usage
    reasoning_tokens: int | None = None


class _Details(Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Error(Struct):
    message: str | None = None
    code: object = None


CHUNK: Final = msgspec.json.Decoder(Chunk)
_USAGE: Final = msgspec.json.Decoder(_Usage)
_ERROR: Final = msgspec.json.Decoder(_Error | str)
_TEXT: Final = msgspec.json.Decoder(str)
UNREADABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What decoding an engine's document may raise."""


def _text_of(content: object) -> str:
    """Return the text of a string or of a list of parts."""
    return "".join(text for text, reasoning in _texts(content) if not reasoning)


def _texts(content: object) -> Iterator[tuple[str, bool]]:
    """Yield what a string or a list of parts says, and whether that is reasoning: Mistral has it among the parts."""
    if isinstance(content, str) and content:
        yield content, False
    if not isinstance(content, list):
        return
    try:
        parts = msgspec.convert(content, list[_Part])
    except msgspec.ValidationError:
        return
    for reasoning, alike in groupby(parts, lambda part: part.type == "thinking"):
        text = "".join(map(_thought if reasoning else _written, alike))
        if text:
            yield text, reasoning


def _written(part: _Part) -> str:
    return part.text or "" if part.type == "text" else ""


def _thought(part: _Part) -> str:
    return _text_of(part.thinking)


def arguments_of(raw: Raw) -> str:
    """Return the JSON text of arguments, which some engines send as an object instead of as text."""
    if raw == _NULL:
        return ""
    return _TEXT.decode(raw) if bytes(raw).startswith(b'"') else bytes(raw).decode()


def used_in(chunk: Chunk) -> Used | None:
    """Return the tokens that a document tells of."""
    if chunk.usage == _NULL:
        return None
    try:
        told = _USAGE.decode(chunk.usage)
    except UNREADABLE:
        return None
    prompt, completion = told.prompt_tokens_details or _Details(), told.completion_tokens_details or _Details()
    return Used(
        Usage(
            prompt_tokens=told.prompt_tokens,
            completion_tokens=told.completion_tokens,
            cached_tokens=prompt.cached_tokens,
        ),
        completion.reasoning_tokens,
    )


def is_error(chunk: Chunk) -> bool:
    """Say whether a document tells of an error. Beside an answer, an error that says nothing is none."""
    if error_said(chunk.error) or chunk.kind == "error":
        return True
    is_answer = chunk.choices is not None or chunk.usage != _NULL
    return not is_answer and (chunk.error != _NULL or chunk.message != _NULL)


def error_of(chunk: Chunk) -> tuple[str, int]:
    """Return message and status of an error that came where an answer was expected; the status is 0 without one."""
    try:
        flat = {"message": chunk.message, "code": chunk.code}
        error = _ERROR.decode(msgspec.json.encode(flat) if chunk.error == _NULL else chunk.error)
    except UNREADABLE:
        return "the engine failed", 0
    if isinstance(error, str):
        return error or "the engine failed", 0
    code = error.code if isinstance(error.code, int) and 400 <= error.code <= 599 else 0
    return error.message or "the engine failed", code
