"""A Chat Completions answer as typed pieces: what a translator into another dialect reads.

It smooths what engines do differently: the name of a call in fragments or again with every piece, arguments that come
whole or as an object, calls without an index or an id, two names for reasoning, usage after the finish or not at all.
The pieces do not depend on how the answer was cut. Unlike an observer it may not overlook anything: what it cannot read
is a failure, since the client would get an answer with a hole.
"""

from typing import Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.observe import error_said
from luftpause.core.dialects.sse import EventCutter, data_of, split_events
from luftpause.core.dialects.surrogates import read_mended
from luftpause.core.model.turns import Usage

ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longest event and longest whole answer that is translated."""

CALLS_MAX: Final = 256
"""More tool calls than these in one answer are a failure."""


class Begun(Struct, frozen=True):
    """The engine answers. Comes first, once."""

    id: str
    model: str


class Text(Struct, frozen=True):
    """The next piece of the answer's text."""

    text: str


class Reasoning(Struct, frozen=True):
    """The next piece of what the model thinks before it answers."""

    text: str


class CallBegun(Struct, frozen=True):
    """A tool call; `call` counts the calls of the answer from 0. The id is empty where the engine gave none."""

    call: int
    id: str
    name: str


class CallArguments(Struct, frozen=True):
    """The next piece of the JSON text of a call's arguments."""

    call: int
    text: str


class Finished(Struct, frozen=True):
    """Why the model stopped; `stop` is the stop sequence that it met, where the engine tells."""

    reason: str
    stop: str


class Used(Struct, frozen=True):
    """Tokens of the turn. The last one counts."""

    usage: Usage


class Failed(Struct, frozen=True):
    """The engine, or what it sent, failed. Nothing follows."""

    message: str
    status: int = 0


class Done(Struct, frozen=True):
    """The engine said that its answer is over."""


Piece: TypeAlias = Begun | Text | Reasoning | CallBegun | CallArguments | Finished | Used | Failed | Done


class ChatStreamReader:
    """Reads a stream, cut anywhere."""

    def __init__(self) -> None:
        self._cutter = EventCutter(ANSWER_BYTES_MAX)
        self._pieces = _Pieces()

    def feed(self, data: bytes) -> list[Piece]:
        """Return the pieces that this data completes."""
        for event in split_events(self._cutter.feed(data), ANSWER_BYTES_MAX):
            self._pieces.take_document(data_of(event))
        if self._cutter.skipped:
            self._pieces.fail("the engine sent an event that is too long to be translated")
        return self._pieces.collected()

    def end(self) -> list[Piece]:
        """Return the pieces of an event without its final blank line, and of calls that were not yet whole."""
        for event in split_events(self._cutter.rest(), ANSWER_BYTES_MAX):
            self._pieces.take_document(data_of(event))
        self._pieces.announce_calls()
        return self._pieces.collected()


def read_chat_answer(body: bytes) -> list[Piece]:
    """Return the pieces of a whole answer. One that holds a choice is over with it, also where it does not say why."""
    pieces = _Pieces()
    pieces.take_document(body)
    pieces.end_document()
    return pieces.collected()


_NULL: Final = Raw(b"null")


class _Function(Struct):
    name: str | None = None
    arguments: Raw = _NULL


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(Struct):
    type: str = ""
    text: str | None = None


class _Message(Struct):
    content: object = None
    reasoning_content: object = None
    reasoning: object = None
    refusal: object = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    index: int | None = None
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    stop_reason: object = None
    matched_stop: object = None


class _Chunk(Struct):
    id: str | None = None
    model: str | None = None
    kind: str | None = msgspec.field(name="object", default=None)
    choices: list[_Choice] | None = None
    usage: Raw = _NULL
    error: Raw = _NULL
    message: Raw = _NULL
    code: Raw = _NULL


class _Details(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Error(Struct):
    message: str | None = None
    code: object = None


class _OpenCall(Struct):
    """A call whose name may still grow; `number` is -1 until it is announced.

    `held` are arguments that came before any of its name did.
    """

    index: int | None
    id: str = ""
    name: str = ""
    number: int = -1
    held: str = ""


_CHUNK: Final = msgspec.json.Decoder(_Chunk)
_USAGE: Final = msgspec.json.Decoder(_Usage)
_ERROR: Final = msgspec.json.Decoder(_Error | str)
_TEXT: Final = msgspec.json.Decoder(str)
UNREADABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What decoding an engine's document may raise."""


class _Pieces:
    """Turns documents into pieces. After a failure it takes nothing more."""

    def __init__(self) -> None:
        self._found: list[Piece] = []
        self._calls: list[_OpenCall] = []
        self._announced = 0
        self._begun = False
        self._chose = False
        self._over = False

    def collected(self) -> list[Piece]:
        """Return the pieces since the last time."""
        found, self._found = self._found, []
        return found

    def fail(self, message: str, status: int = 0) -> None:
        """End with a failure."""
        if not self._over:
            self._found.append(Failed(message, status))
            self._over = True

    def take_document(self, document: bytes) -> None:
        if self._over or not document.strip():
            return
        if document.strip() == b"[DONE]":
            self._end()
            return
        try:
            chunk = read_mended(_CHUNK, document)
        except UNREADABLE:
            self.fail("the engine sent what is no Chat Completions answer")
            return
        if _is_error(chunk):
            self.fail(*_error_of(chunk))
            return
        try:
            self._take_chunk(chunk)
        except UNREADABLE:  # arguments are read one by one
            self.fail("the engine sent what is no Chat Completions answer")

    def end_document(self) -> None:
        """Nothing follows the one document that was taken."""
        if self._chose and not self._over:
            self._end()

    def announce_calls(self) -> None:
        """Begin the calls that have none of their arguments yet: nothing more of their names will come."""
        for call in self._calls if not self._over else ():
            if call.id or call.name or call.held:
                self._announce(call)

    def _end(self) -> None:
        self.announce_calls()
        self._found.append(Done())
        self._over = True

    def _take_chunk(self, chunk: _Chunk) -> None:
        if not self._begun:
            self._begun = True
            self._found.append(Begun(chunk.id or "", chunk.model or ""))
        for choice in chunk.choices or ():
            if not choice.index:
                self._chose = True
                self._take_choice(choice)
        usage = _usage_of(chunk.usage)
        if usage is not None:
            self._found.append(Used(usage))

    def _take_choice(self, choice: _Choice) -> None:
        said = choice.delta or choice.message
        if said is not None:
            reasoning = _text_of(said.reasoning_content) or _text_of(said.reasoning)
            if reasoning:
                self._found.append(Reasoning(reasoning))
            for text in (_text_of(said.content), _text_of(said.refusal)):
                if text:
                    self._found.append(Text(text))
            for position, call in enumerate(said.tool_calls or ()):
                whole = choice.delta is None and call.index is None
                self._take_call(call, position if whole else call.index)
        if choice.finish_reason:
            self.announce_calls()
            stops = (choice.stop_reason, choice.matched_stop)
            self._found.append(
                Finished(choice.finish_reason, next((stop for stop in stops if isinstance(stop, str)), ""))
            )

    def _take_call(self, said: _Call, index: int | None) -> None:
        function = said.function or _Function()
        call = self._call_of(said.id or "", function.name or "", index)
        if call is None:
            self.fail(f"the engine made more than {CALLS_MAX} tool calls")
            return
        if call.number < 0:
            call.id = _grown(call.id, said.id or "")
            call.name = _grown(call.name, function.name or "")
        arguments = _arguments_of(function.arguments)
        if len(call.held) + len(arguments) > ANSWER_BYTES_MAX:
            self.fail("the engine's tool calls are too long to be translated")
        elif arguments and call.number < 0 and not call.name:
            call.held += arguments
        elif arguments:
            self._announce(call)
            self._found.append(CallArguments(call.number, arguments))

    def _call_of(self, call_id: str, name: str, index: int | None) -> _OpenCall | None:
        """Return the call that a fragment belongs to, a new one where it begins one; None beyond `CALLS_MAX`.

        The index says it; some engines leave it out, or give each call the same one with an id of its own.
        """
        if index is None and call_id:
            known = next((call for call in self._calls if call.id == call_id), None)
        else:
            known = next((call for call in reversed(self._calls) if call.index == index), None)
        if known is not None and not _is_another(known, call_id, name):
            return known
        if len(self._calls) >= CALLS_MAX:
            return None
        for call in self._calls:
            if call.name:
                self._announce(call)
        self._calls.append(_OpenCall(index))
        return self._calls[-1]

    def _announce(self, call: _OpenCall) -> None:
        if call.number < 0:
            call.number = self._announced
            self._announced += 1
            self._found.append(CallBegun(call.number, call.id, call.name))
            if call.held:
                self._found.append(CallArguments(call.number, call.held))
                call.held = ""


def _is_another(known: _OpenCall, call_id: str, name: str) -> bool:
    """Say whether a fragment with this id and name begins another call than the one at its place."""
    if call_id:
        return bool(name and known.id and known.name and call_id != known.id)
    return bool(name) and known.index is None and known.number >= 0


def _grown(known: str, said: str) -> str:
    """Return a name with its next fragment. Said again it is no fragment."""
    return known if said == known else known + said


def _text_of(content: object) -> str:
    """Return the text of a string or of a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    try:
        parts = msgspec.convert(content, list[_Part])
    except msgspec.ValidationError:
        return ""
    return "".join(part.text or "" for part in parts if part.type == "text")


def _arguments_of(raw: Raw) -> str:
    """Return the JSON text of arguments, which some engines send as an object instead of as text."""
    if raw == _NULL:
        return ""
    return _TEXT.decode(raw) if bytes(raw).startswith(b'"') else bytes(raw).decode()


def _usage_of(raw: Raw) -> Usage | None:
    if raw == _NULL:
        return None
    try:
        usage = _USAGE.decode(raw)
    except UNREADABLE:
        return None
    details = usage.prompt_tokens_details
    cached = None if details is None else details.cached_tokens
    return Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, cached_tokens=cached)


def _is_error(chunk: _Chunk) -> bool:
    """Say whether a document tells of an error. Beside an answer, an error that says nothing is none."""
    if error_said(chunk.error) or chunk.kind == "error":
        return True
    is_answer = chunk.choices is not None or chunk.usage != _NULL
    return not is_answer and (chunk.error != _NULL or chunk.message != _NULL)


def _error_of(chunk: _Chunk) -> tuple[str, int]:
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
