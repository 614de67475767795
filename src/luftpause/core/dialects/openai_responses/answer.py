"""A response that is made from the pieces of a Chat Completions answer.

Items follow one another: one is closed before the next is opened, as clients know it from the original. What an engine
says for a second tool call before the first is whole waits until then, so nothing is lost where calls come interleaved.
"""

import hashlib
import re
from typing import Final

from msgspec import Struct

from luftpause.core.dialects.call_ids import CallIds
from luftpause.core.dialects.chat_answer import (
    ANSWER_BYTES_MAX,
    Begun,
    CallArguments,
    CallBegun,
    Failed,
    Finished,
    Piece,
    Reasoning,
    Text,
)
from luftpause.core.dialects.chat_documents import Used
from luftpause.core.dialects.openai_responses.chat_request import ChatRequest
from luftpause.core.dialects.openai_responses.errors import failed_event, response_error
from luftpause.core.dialects.openai_responses.output_items import CallItem, Event, Fields, OutputItem, TextItem
from luftpause.core.dialects.openai_responses.response import response_object, usage_object, written_event
from luftpause.core.dialects.openai_responses.tools import ToolKind

_CUT: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Finish reasons of an answer that is not whole, and what they are called here."""

_PREFIXES: Final = {ToolKind.FUNCTION: "fc", ToolKind.CUSTOM: "ctc", ToolKind.SEARCH: "tsc"}
_ID_CHARS_MAX: Final = 64
_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]+|^(chatcmpl|cmpl|resp)-")


_BROKEN: Final = ("abort", "error")
_ITEM_CHARS: Final = 1024
"""What an item is taken to cost beside its text, so that many tiny ones are bounded too."""


class _Call(Struct):
    """A call that the engine began; `item` is None until it is its turn to be written."""

    begun: CallBegun
    item: CallItem | None = None
    waiting: list[str] = []


class Answer:
    """Takes pieces, gives events. Ends once, with `response.completed`, `incomplete` or `failed`.

    Attributes:
        failure: why there is no answer, empty while there may be one.
        created_at: when the engine began, seconds since the epoch; 0 where it does not say.
    """

    def __init__(self, asked: ChatRequest, ids: CallIds) -> None:
        self.failure = ""
        self.created_at = 0
        self._asked = asked
        self._name = hashlib.sha256(asked.body).hexdigest()[:32]  # for an engine that gives no id
        self._out: list[bytes] = []
        self._number = 0
        self._begun = False
        self._response: Fields = {}
        self._output: list[Fields] = []
        self._open: OutputItem | None = None
        self._calls: list[_Call] = []
        self._ids = ids
        self._late: list[Text | Reasoning] = []
        self._finish = ""
        self._used: Used | None = None
        self._kept = 0

    @property
    def over(self) -> bool:
        """Nothing follows."""
        return bool(self._response)

    def response(self) -> Fields:
        """Return the response of an answer that is over."""
        return self._response

    def events(self) -> bytes:
        """Return the events since the last time."""
        out, self._out = self._out, []
        return b"".join(out)

    def take(self, pieces: list[Piece]) -> None:
        """Take the next pieces."""
        for piece in pieces:
            if not self.over:
                self._take(piece)

    def end(self) -> None:
        """End: the engine says no more. A finish reason tells that it had said all."""
        if self.over:
            return
        if self._finish:
            self._complete()
        else:
            self.fail("the engine's answer broke off")

    def fail(self, message: str, status: int = 0) -> None:
        """End with a failure. What is open stays so; the response has it as far as it came."""
        self.failure = message
        self._begin("")
        left = [self._open.item("incomplete")] if self._open else []
        error = response_error(message, status=status)
        response = self._object("failed", output=self._output + left, error=error)
        self._out.append(failed_event(self._number, response))
        self._response = response

    def _take(self, piece: Piece) -> None:
        if isinstance(piece, Text | Reasoning):
            self._take_text(piece)
        elif isinstance(piece, CallArguments):
            self._take_arguments(self._calls[piece.call], piece.text)
        elif isinstance(piece, CallBegun):
            self._calls.append(_Call(piece))
            if self._is_free():
                self._open_call(self._calls[-1])
        elif isinstance(piece, Begun):
            self._begin(piece.id)
        elif isinstance(piece, Finished):
            self._finish = self._finish or piece.reason
        elif isinstance(piece, Used):
            self._used = piece
        elif isinstance(piece, Failed):
            self.fail(piece.message, piece.status)
        else:
            self._done()

    def _begin(self, engine_id: str) -> None:
        if self._begun:
            return
        self._begun = True
        self._name = _NO_ID.sub("", engine_id)[:_ID_CHARS_MAX] or self._name
        for kind in ("response.created", "response.in_progress"):
            self._write([(kind, {"response": self._object("in_progress")})])

    def _done(self) -> None:
        if self._begun:
            self._complete()
        else:
            self.fail("the engine's answer holds nothing")

    def _take_text(self, piece: Text | Reasoning) -> None:
        """Let text go on, or begin. Behind a call that is not whole it waits for the end."""
        reasoning = isinstance(piece, Reasoning)
        if not (isinstance(self._open, TextItem) and self._open.reasoning == reasoning):
            if self._late or not self._is_free():
                self._late.append(piece)
                self._keep(len(piece.text))
                return
            self._close()
            name = f"{'rs' if reasoning else 'msg'}_{self._name}_{len(self._output)}"
            self._start(TextItem(len(self._output), name, reasoning=reasoning))
        self._grow(piece.text)

    def _take_arguments(self, call: _Call, text: str) -> None:
        """Let a call go on. One that was closed was whole: what follows can only be blanks."""
        if call.item is None:
            call.waiting.append(text)
            self._keep(len(text))
        elif call.item is self._open:
            self._grow(text)

    def _is_free(self) -> bool:
        """Say whether what is open may be closed."""
        return not isinstance(self._open, CallItem) or self._open.is_whole()

    def _open_call(self, call: _Call) -> None:
        self._close()
        place = len(self._output)
        tool = self._asked.tools.tool(call.begun.name)
        item_id = f"{_PREFIXES[tool.kind]}_{self._name}_{place}"
        call.item = CallItem(place, item_id, self._ids.give(call.begun.id), tool)
        self._start(call.item)
        for text in call.waiting:
            self._grow(text)

    def _start(self, item: OutputItem) -> None:
        self._keep(_ITEM_CHARS)
        self._open = item
        self._write(item.opened())

    def _grow(self, text: str) -> None:
        assert self._open is not None, "what grows was opened"
        self._keep(len(text))
        self._write(self._open.grown(text))

    def _close(self, status: str = "completed") -> None:
        if self._open is not None:
            self._write(self._open.closed(status))
            self._output.append(self._open.item(status))
            self._open = None

    def _complete(self) -> None:
        """End with what the engine said. Whatever had to wait has its turn now."""
        if self._finish in _BROKEN:
            self.fail(f"the engine gave up: {self._finish}")
            return
        for call in self._calls:
            if call.item is None:
                self._open_call(call)
        late, self._late = self._late, []
        if late:
            self._close()
        for piece in late:
            self._take_text(piece)
        reason = _CUT.get(self._finish)
        status = "incomplete" if reason else "completed"
        self._close(status)
        if not self.over:
            details = {"reason": reason} if reason else None
            response = self._object(status, output=self._output, incomplete_details=details)
            self._write([(f"response.{status}", {"response": response})])
            self._response = response

    def _keep(self, chars: int) -> None:
        self._kept += chars
        if self._kept > ANSWER_BYTES_MAX and not self.over:
            self.fail("the engine's answer is too long to be translated")

    def _write(self, events: list[Event]) -> None:
        for kind, fields in events if not self.over else ():
            self._out.append(written_event(kind, self._number, fields))
            self._number += 1

    def _object(self, status: str, **fields: object) -> Fields:
        usage = None if self._used is None else usage_object(self._used)
        own: Fields = {"id": f"resp_{self._name}", "created_at": self.created_at, "status": status, "usage": usage}
        return response_object(self._asked.echo, **own, **fields)
