"""A Chat Completions answer as typed pieces: what a translator into another dialect reads.

It smooths what engines do differently from one document to the next: the name of a call in fragments or again with
every piece, arguments that come before it, calls without an index or an id, usage after the finish or not at all.
The pieces do not depend on how the answer was cut. Unlike an observer it may not overlook anything: what it cannot read
is a failure, since the client would get an answer with a hole.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from luftpause.core.dialects.chat_documents import (
    CHUNK,
    UNREADABLE,
    Call,
    Choice,
    Chunk,
    Function,
    Used,
    arguments_of,
    error_of,
    is_error,
    used_in,
)
from luftpause.core.dialects.sse import EventCutter, data_of, split_events
from luftpause.core.dialects.surrogates import read_mended

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


class _OpenCall(Struct):
    """A call whose name may still grow; `number` is -1 until it is announced.

    `held` are arguments that came before any of its name did.
    """

    index: int | None
    id: str = ""
    name: str = ""
    number: int = -1
    held: str = ""


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
            chunk = read_mended(CHUNK, document)
        except UNREADABLE:
            self.fail("the engine sent what is no Chat Completions answer")
            return
        if is_error(chunk):
            self.fail(*error_of(chunk))
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

    def _take_chunk(self, chunk: Chunk) -> None:
        if not self._begun:
            self._begun = True
            self._found.append(Begun(chunk.id or "", chunk.model or ""))
        for choice in chunk.choices or ():
            if not choice.index:
                self._chose = True
                self._take_choice(choice)
        used = used_in(chunk)
        if used is not None:
            self._found.append(used)

    def _take_choice(self, choice: Choice) -> None:
        said = choice.delta or choice.message
        if said is not None:
            self._found.extend(Reasoning(text) if reasoning else Text(text) for text, reasoning in said.texts())
            for position, call in enumerate(said.calls()):
                whole = choice.delta is None and call.index is None
                self._take_call(call, position if whole else call.index)
        if choice.finish_reason:
            self.announce_calls()
            stops = (choice.stop_reason, choice.matched_stop)
            self._found.append(
                Finished(choice.finish_reason, next((stop for stop in stops if isinstance(stop, str)), ""))
            )

    def _take_call(self, said: Call, index: int | None) -> None:
        function = said.function or Function()
        call = self._call_of(said.id or "", function.name or "", index)
        if call is None:
            self.fail(f"the engine made more than {CALLS_MAX} tool calls")
            return
        if call.number < 0:
            call.id = _grown(call.id, said.id or "")
            call.name = _grown(call.name, function.name or "")
        arguments = arguments_of(function.arguments)
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
