"""A Chat Completions answer as a Gemini answer: a stream as it comes, or one whole document.

Text and thoughts go out as they come. Calls go out at the end, all at once: this dialect knows them only whole.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from luftpause.core.dialects.call_ids import CallIds
from luftpause.core.dialects.chat_answer import (
    ANSWER_BYTES_MAX,
    Begun,
    CallArguments,
    CallBegun,
    ChatStreamReader,
    Done,
    Failed,
    Finished,
    Piece,
    Reasoning,
    Text,
    read_chat_answer,
)
from luftpause.core.dialects.chat_documents import Used
from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.gemini.errors import error_body

BLANK: Final = b"\n"
"""Says nothing, in either form of a stream. Google's own clients, Python and Node, die of a comment."""
EMPTY_EVENT: Final = b"data: {}\n\n"
"""Says nothing to those who read events and nothing between them."""

PIECES_PER_BLANK: Final = 32
"""A model that thinks for a client that does not want to read it still shows that it lives."""

FAILED_STATUS: Final = 500
"""Of failures that an engine tells without one."""

HELD_CHARS_MAX: Final = 8 * 1024 * 1024
"""More arguments than these are not held back."""

_REASONS: Final = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
_FAILURES: Final = ("abort", "error")
"""Finish reasons of an engine that did not finish."""

SHOWN_CHARS_MAX: Final = 500

_Members = dict[str, object]


class _Call(Struct):
    begun: CallBegun
    arguments: list[str] = []


class Answer:
    """What both ways back have in common.

    Attributes:
        failure: why there is no answer, None while there may be one.
    """

    def __init__(self, ids: CallIds, *, model: str, thoughts: bool) -> None:
        self.failure: Failed | None = None
        self._ids = ids
        self._model = model
        self._thoughts = thoughts
        self._head: Begun | None = None
        self._calls: list[_Call] = []
        self._held = 0
        self._finish = ""
        self._used: Used | None = None

    def take(self, piece: Piece) -> _Members | None:
        """Add a piece; return the part that it is, None where it is none yet or never."""
        match piece:
            case Text(text):
                return {"text": text}
            case Reasoning(text):
                return {"text": text, "thought": True} if self._thoughts else None
            case _:
                self._keep(piece)
        return None

    def over(self, *, done: bool) -> None:
        """Nothing more will come; `done` says that the engine said so."""
        if self.failure is None and self._head is None:
            self.failure = Failed("the engine sent no answer")
        elif self.failure is None and not self._finish and not done:
            self.failure = Failed("the engine's answer broke off")

    def error(self) -> bytes:
        """Return the failure as an error body."""
        assert self.failure is not None, "there is none to tell of"
        return error_body(self.failure.status or FAILED_STATUS, self.failure.message)

    def response(self, parts: Sequence[_Members], **candidate: object) -> _Members:
        """Return a document with these parts, and what else is said of its one candidate."""
        content = {"parts": parts, "role": "model"}
        return {
            "candidates": [{"content": content, "index": 0, **candidate}],
            "modelVersion": (self._head.model if self._head else "") or self._model,
            "responseId": self._head.id if self._head else "",
        }

    def last(self, parts: Sequence[_Members]) -> _Members:
        """Return the document that ends the answer: with its calls, the reason and the tokens."""
        calls, unreadable = self._called()
        if unreadable and self._finish != "length":
            message = f"Malformed function call: {unreadable[:SHOWN_CHARS_MAX]}"
            ended = {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message}
        else:
            ended = {"finishReason": _REASONS.get(self._finish, "STOP")}
        said = self.response([*parts, *calls] or [{"text": ""}], **ended)
        if self._used is not None:
            said["usageMetadata"] = _counts(self._used)
        return said

    def _keep(self, piece: Piece) -> None:
        match piece:
            case CallBegun():
                self._calls.append(_Call(piece))
            case CallArguments(call, text):
                self._hold(self._calls[call], text)
            case Begun():
                self._head = piece
            case Finished(reason):
                self._finish = self._finish or reason
                if reason in _FAILURES:
                    self.failure = Failed("the engine gave the turn up")
            case Used():
                self._used = piece
            case Failed():
                self.failure = piece
            case Text() | Reasoning() | Done():
                pass

    def _hold(self, call: _Call, text: str) -> None:
        self._held += len(text)
        if self._held > HELD_CHARS_MAX:
            self.failure = Failed("the engine's tool calls are too long to be translated")
        else:
            call.arguments.append(text)

    def _called(self) -> tuple[list[_Members], str]:
        """Return the calls as parts; or none, and what is wrong with one of them: half of them must not be run."""
        called: list[tuple[CallBegun, _Members]] = []
        for call in self._calls:
            text = "".join(call.arguments)
            try:
                called.append((call.begun, msgspec.json.decode(text or "{}", type=_Members)))
            except (msgspec.DecodeError, RecursionError):
                return [], f"{call.begun.name}({text})"
        return [
            {"functionCall": {"id": self._ids.give(begun.id), "name": begun.name, "args": arguments}}
            for begun, arguments in called
        ], ""


def _counts(used: Used) -> _Members:
    """Return the tokens in this dialect's words: there, thoughts stand beside the answer, not in it."""
    usage = used.usage
    thoughts = min(used.reasoning_tokens or 0, usage.completion_tokens)
    counts: _Members = {"promptTokenCount": usage.prompt_tokens}
    if usage.cached_tokens is not None:
        counts["cachedContentTokenCount"] = usage.cached_tokens
    if used.reasoning_tokens is not None:
        counts["thoughtsTokenCount"] = thoughts
    total = usage.prompt_tokens + usage.completion_tokens
    return counts | {"candidatesTokenCount": usage.completion_tokens - thoughts, "totalTokenCount": total}


class StreamBack:
    """Turns a stream into a stream, of events or as one array. It ends exactly once: with a reason or an error.

    `sign` is what it writes while there is nothing to say.
    """

    def __init__(self, answer: Answer, *, events: bool, sign: bytes) -> None:
        self._reader = ChatStreamReader()
        self._answer = answer
        self._events = events
        self._sign = sign
        self._written: list[bytes] = []
        self._begun = False
        self._over = False
        self._silent = 0

    @property
    def failure(self) -> str:
        """Why the client was told that there is no answer; empty while there may be one."""
        failure = self._answer.failure
        return "" if failure is None else failure.message

    def feed(self, data: bytes) -> bytes:
        """Return what follows from the next piece, cut anywhere."""
        self._take(self._reader.feed(data))
        return self._taken()

    def end(self) -> bytes:
        """Return what is to follow the last piece."""
        self._take(self._reader.end())
        self._end(done=False)
        return self._taken()

    def _take(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if self._over:
                return
            part = self._answer.take(piece)
            done = isinstance(piece, Done)
            if done or self._answer.failure is not None:
                self._end(done=done)
            elif part is not None:
                self._write(msgspec.json.encode(self._answer.response([part])))
            elif isinstance(piece, Reasoning):
                self._show_life()

    def _show_life(self) -> None:
        self._silent += 1
        if self._silent % PIECES_PER_BLANK == 0:
            self._written.append(self._sign)

    def _end(self, *, done: bool) -> None:
        if self._over:
            return
        self._over = True
        self._answer.over(done=done)
        if self._answer.failure is None:
            self._write(msgspec.json.encode(self._answer.last(())))
        elif self._events:
            self._written.append(failure_event(self._answer.error()))
        else:
            self._write(self._answer.error())
        if not self._events:
            self._written.append(b"]")

    def _write(self, document: bytes) -> None:
        if self._events:
            self._written.append(b"data: %b\n\n" % document)
        else:
            self._written.append((b",\n" if self._begun else b"[") + document)
        self._begun = True

    def _taken(self) -> bytes:
        written = b"".join(self._written)
        self._written.clear()
        return written


class WholeBack:
    """Turns a whole answer into a whole document."""

    def __init__(self, answer: Answer) -> None:
        self._body = bytearray()
        self._answer = answer

    @property
    def failure(self) -> str:
        """None is told in passing: see `end`."""
        return ""

    def feed(self, data: bytes) -> bytes:
        """Keep the next piece; there is nothing to say before the last."""
        if len(self._body) <= ANSWER_BYTES_MAX:
            self._body += data
        return b""

    def end(self) -> bytes:
        """Return the document.

        Raises:
            UnfitAnswerError: the engine sent no whole answer.
        """
        if len(self._body) > ANSWER_BYTES_MAX:
            raise UnfitAnswerError("the engine's answer is too long to be translated")
        pieces = read_chat_answer(bytes(self._body))
        parts = [part for part in map(self._answer.take, pieces) if part is not None]
        self._answer.over(done=Done() in pieces)
        failure = self._answer.failure
        if failure is not None:
            raise UnfitAnswerError(failure.message)
        return msgspec.json.encode(self._answer.last(parts))


def failure_event(body: bytes) -> bytes:
    """Return an error body as it ends a stream of events: bare, as Google sends it, and as its clients find it."""
    return body + b"\n\n"
