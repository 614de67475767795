"""A Chat Completions answer as a Messages answer: a stream as it comes, or one whole message."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from luftpause.core.dialects.anthropic_messages.blocks import BlockQueue, TooMuchError
from luftpause.core.dialects.anthropic_messages.errors import engine_error, error_event
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
from luftpause.core.model.turns import Usage

PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'
"""A whole event that says nothing."""

PIECES_PER_PING: Final = 32
"""A model that thinks for a client that does not want to read it still shows that it lives."""

FAILED_STATUS: Final = 500
"""Of failures that an engine tells without one."""

_STOPS: Final = {"length": "max_tokens", "content_filter": "refusal"}
UNREADABLE_ARGUMENTS: Final = "unreadable_arguments"
"""Names the text of arguments that are no JSON object, in a whole answer: its tools' inputs are objects."""

_FAILURES: Final = ("abort", "error")
"""Finish reasons of an engine that did not finish."""


class Answer:
    """What both ways back have in common: how pieces become blocks, and how the answer ends.

    Attributes:
        head: the first piece, None before it came.
        failure: why there is no answer, None while there may be one.
    """

    def __init__(self, queue: BlockQueue, ids: CallIds, *, thinking: bool, stops: Sequence[str]) -> None:
        self.head: Begun | None = None
        self.failure: Failed | None = None
        self._queue = queue
        self._ids = ids
        self._thinking = thinking
        self._stops = stops
        self._finished: Finished | None = None
        self._usage: Usage | None = None
        self._calls = 0

    def take(self, piece: Piece) -> None:
        """Add a piece."""
        try:
            self._take(piece)
        except TooMuchError:
            self.failure = Failed("the engine mixes parts of its answer that are too long to be put in order")

    def over(self, *, done: bool) -> None:
        """Nothing more will come; `done` says that the engine said so."""
        if self.failure is None and self.head is None:
            self.failure = Failed("the engine sent no answer")
        elif self.failure is None and self._finished is None and not done:
            self.failure = Failed("the engine's answer broke off")
        if self.failure is None:
            self._queue.end()

    def delta(self) -> dict[str, object]:
        """Return why the model stopped."""
        reason, stop = (self._finished.reason, self._finished.stop) if self._finished else ("stop", "")
        if stop and stop in self._stops:
            return {"stop_reason": "stop_sequence", "stop_sequence": stop}
        ending = "tool_use" if self._calls else "end_turn"
        return {"stop_reason": _STOPS.get(reason, ending), "stop_sequence": None}

    def usage(self) -> dict[str, int]:
        """Return the tokens in this dialect's words: there, cached tokens stand beside the input, not in it."""
        usage = self._usage or Usage(prompt_tokens=0, completion_tokens=0)
        cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
        return {
            "input_tokens": usage.prompt_tokens - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": usage.completion_tokens,
        }

    def _take(self, piece: Piece) -> None:
        match piece:
            case Begun():
                self.head = piece
            case Finished(reason):
                self._finished = self._finished or piece
                if reason in _FAILURES:
                    self.failure = Failed("the engine gave the turn up")
            case Used(usage=usage):
                self._usage = usage
            case Failed():
                self.failure = piece
            case Text() | Reasoning() | CallBegun() | CallArguments():
                self._say(piece)
            case Done():
                pass

    def _say(self, piece: Text | Reasoning | CallBegun | CallArguments) -> None:
        match piece:
            case Text(text):
                self._queue.say("text", text)
            case Reasoning(text):
                if self._thinking:
                    self._queue.say("thinking", text)
            case CallBegun(call, call_id, name):
                self._calls += 1
                self._queue.begin_call(call, self._ids.give(call_id), name)
            case CallArguments(call, text):
                self._queue.add_arguments(call, text)

    def message(self, content: Sequence[object]) -> dict[str, object]:
        """Return the message, with this content."""
        return {
            "id": f"msg_{self._name()}",
            "type": "message",
            "role": "assistant",
            "model": self.head.model if self.head else "",
            "content": content,
        }

    def _name(self) -> str:
        # Claude Code joins messages of one id: an answer without any must not share its own with others.
        return (self.head.id.removeprefix("chatcmpl-") if self.head else "") or self._ids.answers_name()


class StreamBack:
    """Turns a stream into a stream. It ends exactly once: with `message_stop`, or with an error event."""

    def __init__(self, ids: CallIds, *, thinking: bool, stops: Sequence[str]) -> None:
        self._reader = ChatStreamReader()
        self._events = _Events()
        self._answer = Answer(BlockQueue(self._events), ids, thinking=thinking, stops=stops)
        self._over = False
        self._silent = 0
        self._thinking = thinking

    @property
    def failure(self) -> str:
        """Why the client was told that there is no answer; empty while there may be one."""
        failure = self._answer.failure
        return "" if failure is None else failure.message

    def feed(self, data: bytes) -> bytes:
        """Return the events for the next piece, cut anywhere."""
        self._take(self._reader.feed(data))
        return self._events.taken()

    def end(self) -> bytes:
        """Return the last events."""
        self._take(self._reader.end())
        self._end(done=False)
        return self._events.taken()

    def _take(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if self._over:
                return
            self._answer.take(piece)
            if isinstance(piece, Begun):
                self._begin()
            elif isinstance(piece, Reasoning) and not self._thinking:
                self._show_life()
            done = isinstance(piece, Done)
            if done or self._answer.failure is not None:
                self._end(done=done)

    def _begin(self) -> None:
        start = self._answer.message(()) | {"stop_reason": None, "stop_sequence": None, "usage": self._answer.usage()}
        self._events.write("message_start", {"type": "message_start", "message": start})

    def _show_life(self) -> None:
        self._silent += 1
        if self._silent % PIECES_PER_PING == 0:
            self._events.write_raw(PING)

    def _end(self, *, done: bool) -> None:
        if self._over:
            return
        self._over = True
        self._answer.over(done=done)
        failure = self._answer.failure
        if failure is not None:
            self._events.write_raw(error_event(engine_error(failure.status or FAILED_STATUS, failure.message)))
            return
        delta = {"type": "message_delta", "delta": self._answer.delta(), "usage": self._answer.usage()}
        self._events.write("message_delta", delta)
        self._events.write("message_stop", {"type": "message_stop"})


class WholeBack:
    """Turns a whole answer into a whole message."""

    def __init__(self, ids: CallIds, *, thinking: bool, stops: Sequence[str]) -> None:
        self._body = bytearray()
        self._content = _Content()
        self._answer = Answer(BlockQueue(self._content), ids, thinking=thinking, stops=stops)

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
        """Return the message.

        Raises:
            UnfitAnswerError: the engine sent no whole answer.
        """
        if len(self._body) > ANSWER_BYTES_MAX:
            raise UnfitAnswerError("the engine's answer is too long to be translated")
        pieces = read_chat_answer(bytes(self._body))
        for piece in pieces:
            self._answer.take(piece)
        self._answer.over(done=Done() in pieces)
        failure = self._answer.failure
        if failure is not None:
            raise UnfitAnswerError(failure.message)
        message = self._answer.message(self._content.blocks) | self._answer.delta() | {"usage": self._answer.usage()}
        return msgspec.json.encode(message)


_DELTAS: Final = {
    "text": (b"text_delta", b"text"),
    "thinking": (b"thinking_delta", b"thinking"),
    "tool_use": (b"input_json_delta", b"partial_json"),
}
_DELTA: Final = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n'
)


def _block(kind: str, call_id: str, name: str) -> dict[str, object]:
    """Return an empty content block."""
    if kind == "tool_use":
        return {"type": kind, "id": call_id, "name": name, "input": {}}
    return {"type": kind, "text": ""} if kind == "text" else {"type": kind, "thinking": "", "signature": ""}


class _Events:
    """Writes blocks as events; a `BlockSink`."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._index = -1

    def open(self, kind: str, call_id: str, name: str) -> None:
        self._index += 1
        start = {"type": "content_block_start", "index": self._index, "content_block": _block(kind, call_id, name)}
        self.write("content_block_start", start)

    def add(self, kind: str, text: str) -> None:
        delta, member = _DELTAS[kind]
        self._written.append(_DELTA % (self._index, delta, member, msgspec.json.encode(text)))

    def close(self) -> None:
        self.write("content_block_stop", {"type": "content_block_stop", "index": self._index})

    def write(self, name: str, data: object) -> None:
        """Write an event."""
        self._written.append(b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data)))

    def write_raw(self, event: bytes) -> None:
        """Write an event that is ready."""
        self._written.append(event)

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        written = b"".join(self._written)
        self._written.clear()
        return written


class _Content:
    """Collects blocks as the content of a message; a `BlockSink`."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, object]] = []
        self._texts: list[str] = []

    def open(self, kind: str, call_id: str, name: str) -> None:
        self.blocks.append(_block(kind, call_id, name))

    def add(self, kind: str, text: str) -> None:
        del kind
        self._texts.append(text)

    def close(self) -> None:
        block, text = self.blocks[-1], "".join(self._texts)
        self._texts.clear()
        if block["type"] == "tool_use":
            block["input"] = _input(text)
        else:
            block[str(block["type"])] = text


def _input(arguments: str) -> object:
    """Return arguments as the object that an input is. What is none is handed on, for the tool to say what is wrong."""
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return {UNREADABLE_ARGUMENTS: arguments}
