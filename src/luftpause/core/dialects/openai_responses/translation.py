"""One turn that is asked in Responses and answered in Chat Completions."""

from typing import Final

import msgspec
from msgspec import Struct

from luftpause.core.dialects.call_ids import CallIds
from luftpause.core.dialects.chat_answer import ANSWER_BYTES_MAX, ChatStreamReader, read_chat_answer
from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.openai_responses.answer import Answer
from luftpause.core.dialects.openai_responses.chat_request import ChatRequest
from luftpause.core.dialects.openai_responses.errors import engine_refusal
from luftpause.core.dialects.sse import EventCutter, data_of, split_events
from luftpause.core.model.ids import ToolCallId


class StreamTranslation:
    """A `Translation` for a client that wants a stream."""

    def __init__(self, asked: ChatRequest, turn: str) -> None:
        self._asked = asked
        self._ids = CallIds("call_", turn)
        self._reader = ChatStreamReader()
        self._answer = Answer(asked, self._ids)
        self._first: EventCutter | None = EventCutter(ANSWER_BYTES_MAX)

    @property
    def request(self) -> bytes:
        """See `Translation.request`."""
        return self._asked.body

    @property
    def left_out(self) -> tuple[str, ...]:
        """See `Translation.left_out`."""
        return self._asked.left_out

    @property
    def failure(self) -> str:
        """See `WayBack.failure`."""
        return self._answer.failure

    def feed(self, data: bytes) -> bytes:
        """See `Translation.feed`."""
        if self._first is not None:
            self._date(self._first.feed(data))
        self._answer.take(self._reader.feed(data))
        return self._answer.events()

    def end(self) -> bytes:
        """See `Translation.end`."""
        if self._first is not None:
            self._date(self._first.rest())
        self._answer.take(self._reader.end())
        self._answer.end()
        return self._answer.events()

    def error(self, status: int, body: bytes) -> bytes:
        """See `Translation.error`."""
        return engine_refusal(status, body)

    def call_ids(self) -> tuple[ToolCallId, ...]:
        """See `Translation.call_ids`."""
        return self._ids.given()

    def _date(self, block: bytes) -> None:
        """Take the time of the answer from its first document."""
        for event in split_events(block, ANSWER_BYTES_MAX):
            if data_of(event).strip():
                self._answer.created_at = _created(data_of(event))
                self._first = None
                return


class BodyTranslation:
    """A `Translation` for a client that wants the whole answer at once."""

    def __init__(self, asked: ChatRequest, turn: str) -> None:
        self._asked = asked
        self._ids = CallIds("call_", turn)
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def request(self) -> bytes:
        """See `Translation.request`."""
        return self._asked.body

    @property
    def left_out(self) -> tuple[str, ...]:
        """See `Translation.left_out`."""
        return self._asked.left_out

    @property
    def failure(self) -> str:
        """See `WayBack.failure`."""
        return ""

    def feed(self, data: bytes) -> bytes:
        """See `Translation.feed`."""
        self._size += len(data)
        if self._size <= ANSWER_BYTES_MAX:
            self._pieces.append(data)
        return b""

    def end(self) -> bytes:
        """See `Translation.end`."""
        body = b"".join(self._pieces)
        answer = Answer(self._asked, self._ids)
        if self._size > ANSWER_BYTES_MAX:
            answer.fail("the engine's answer is too long to be translated")
        else:
            answer.created_at = _created(body)
            answer.take(read_chat_answer(body))
            answer.end()
        if answer.failure:
            raise UnfitAnswerError(answer.failure)
        return msgspec.json.encode(answer.response())

    def error(self, status: int, body: bytes) -> bytes:
        """See `Translation.error`."""
        return engine_refusal(status, body)

    def call_ids(self) -> tuple[ToolCallId, ...]:
        """See `Translation.call_ids`."""
        return self._ids.given()


class _Dated(Struct):
    created: int = 0


_DATED: Final = msgspec.json.Decoder(_Dated)


def _created(document: bytes) -> int:
    try:
        return _DATED.decode(document).created
    except (msgspec.DecodeError, RecursionError):
        return 0
