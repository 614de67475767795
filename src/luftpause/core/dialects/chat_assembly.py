"""A streamed answer, put together into the one document that a client asked for: a chat's, or a plain completion's.

llama-server does not notice that a client who wants no stream has left while another stream runs, so such a turn is
asked for as a stream; other engines stream unasked. What the engine says beyond the standard is carried: texts are
joined, the last of all else counts. Sans-IO.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias, cast

import msgspec

from luftpause.core.dialects.chat_answer import ANSWER_BYTES_MAX, CALLS_MAX
from luftpause.core.dialects.chat_documents import UNREADABLE
from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.observe import ERROR_CHARS_MAX
from luftpause.core.dialects.sse import EventCutter, data_of, split_events
from luftpause.core.dialects.surrogates import read_mended
from luftpause.core.model.ids import ToolCallId

Json: TypeAlias = dict[str, object]

_DONE: Final = b"[DONE]"
_CHUNK: Final = msgspec.json.Decoder(Json)
_STOPPED: Final[Json] = {"finish_reason": "stop"}
"""Why an answer ended whose engine said that it is over, and not why."""
_CALLED: Final[Json] = {"finish_reason": "tool_calls"}
_JOINED: Final = ("content", "reasoning_content", "reasoning", "refusal")


class _Choice(Protocol):
    """One choice, as far as it has come."""

    def take(self, piece: Json) -> None:
        """Add a piece."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the engine said why it ended."""
        ...

    def whole(self, index: int) -> Json:
        """Return it as a document has it."""
        ...


class _Assembly(ABC):
    """The way back of a turn that was asked for as a stream for a client who wants none: a `WayBack`."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._cutter = EventCutter(ANSWER_BYTES_MAX)
        self._top: Json = {}
        self._choices: dict[int, _Choice] = {}
        self._over = False

    @abstractmethod
    def _begun(self) -> _Choice:
        """Return a choice of which nothing has come."""

    @property
    def failure(self) -> str:
        """See `WayBack.failure`."""
        return ""

    def feed(self, data: bytes) -> bytes:
        """Take the next piece of the stream. Nothing of it can be sent yet.

        Raises:
            UnfitAnswerError: it holds more than anybody asked for.
        """
        block = self._cutter.feed(data)
        if block:
            self._take_block(block)
        return b""

    def end(self) -> bytes:
        """Return the document.

        Raises:
            UnfitAnswerError: there would be a hole in it, or nothing at all.
        """
        rest = self._cutter.rest()
        if rest:
            self._take_block(rest)
        if self._cutter.skipped:
            raise UnfitAnswerError("it sent an event that is too long to be put together with the others")
        if not self._choices:
            told = _text(self._top.get("message"))  # some engines write their errors flat
            raise UnfitAnswerError(f"it sent no answer: {told[:ERROR_CHARS_MAX]}" if told else "it sent no answer")
        if not self._over and not any(choice.finished for choice in self._choices.values()):
            raise UnfitAnswerError("its answer broke off")
        choices = [self._choices[index].whole(index) for index in sorted(self._choices)]
        return msgspec.json.encode({**self._top, "object": self._kind, "choices": choices})

    def error(self, status: int, body: bytes) -> bytes:
        """Return an engine's refusal as it came: it is in this dialect."""
        del status
        return body

    def _take_block(self, block: bytes) -> None:
        for event in split_events(block, ANSWER_BYTES_MAX):
            data = data_of(event).strip()
            self._over = self._over or data == _DONE
            if data and not self._over:
                try:
                    chunk = read_mended(_CHUNK, data)
                except UNREADABLE as error:
                    raise UnfitAnswerError("it sent an event that is no piece of an answer") from error
                self._take_chunk(chunk)

    def _take_chunk(self, chunk: Json) -> None:
        for choice in map(_object, _list(chunk.pop("choices", None))):
            index = choice.pop("index", 0)
            if isinstance(index, int):
                if index not in self._choices:
                    self._choices[index] = self._begun()
                self._choices[index].take(choice)
        for name, value in chunk.items():
            if value is not None or name not in self._top:
                self._top[name] = value


class ChatAssembly(_Assembly):
    """Of a chat."""

    def __init__(self) -> None:
        super().__init__("chat.completion")
        self._chats: list[_ChatChoice] = []

    def call_ids(self) -> Sequence[ToolCallId]:
        """See `WayBack.call_ids`."""
        return tuple(dict.fromkeys(ToolCallId(call_id) for chat in self._chats for call_id in chat.call_ids()))

    def _begun(self) -> _Choice:
        self._chats.append(_ChatChoice())
        return self._chats[-1]


class CompletionAssembly(_Assembly):
    """Of a completion."""

    def __init__(self) -> None:
        super().__init__("text_completion")

    def call_ids(self) -> Sequence[ToolCallId]:
        """See `WayBack.call_ids`."""
        return ()

    def _begun(self) -> _Choice:
        return _TextChoice()


class _Common:
    """What the choices of both have."""

    def __init__(self) -> None:
        self._rest: Json = {}
        self._logprobs: dict[str, list[object]] = {}

    @property
    def finished(self) -> bool:
        """See `_Choice.finished`."""
        return "finish_reason" in self._rest

    def _take_rest(self, piece: Json) -> None:
        for name, value in _object(piece.pop("logprobs", None)).items():
            self._logprobs.setdefault(name, []).extend(_list(value))
        _update(self._rest, piece)


class _TextChoice(_Common):
    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []

    def take(self, piece: Json) -> None:
        self._texts.append(_text(piece.pop("text", None)))
        self._take_rest(piece)

    def whole(self, index: int) -> Json:
        return {
            "text": "".join(self._texts),
            "index": index,
            "logprobs": self._logprobs or None,
            **_STOPPED,
            **self._rest,
        }


class _ChatChoice(_Common):
    def __init__(self) -> None:
        super().__init__()
        self._message: Json = {"role": "assistant"}
        self._calls: list[tuple[object, Json]] = []  # with the index that the engine gave each

    def call_ids(self) -> list[str]:
        """Return the ids of its tool calls, of those that have one."""
        return [call_id for call_id in (_text(call.get("id")) for _, call in self._calls) if call_id]

    def take(self, piece: Json) -> None:
        delta = _object(piece.pop("delta", None))
        for call in map(_object, _list(delta.pop("tool_calls", None))):
            self._take_call(call)
        if told := _object(delta.pop("function_call", None)):
            self._message["function_call"] = _called(_object(self._message.get("function_call")), told)
        for name, value in delta.items():
            if name in _JOINED and isinstance(value, str | list):
                self._message[name] = _joined(self._message.get(name), cast("str | list[object]", value))
            elif value is not None:
                self._message[name] = value
        self._take_rest(piece)

    def whole(self, index: int) -> Json:
        message: Json = {"role": "", "content": "", **self._message}
        if self._calls:
            message["tool_calls"] = [call for _, call in self._calls]
        ending = _CALLED if self._calls else _STOPPED
        whole: Json = {"index": index, "message": message, **ending, **self._rest}
        if self._logprobs:
            whole["logprobs"] = self._logprobs
        return whole

    def _take_call(self, piece: Json) -> None:
        """Add a piece of a tool call to the call that it belongs to."""
        index, told = piece.pop("index", None), _object(piece.pop("function", None))
        call = self._call_of(index, _text(piece.get("id")), _text(told.get("name")))
        call["function"] = _called(_object(call["function"]), told)
        _update(call, piece)

    def _call_of(self, index: object, call_id: str, name: str) -> Json:
        """Return the call that a piece belongs to, a new one where it begins one, as `chat_answer` tells them apart.

        Raises:
            UnfitAnswerError: there are too many.
        """
        for at, call in reversed(self._calls):
            known_id, known_name = _text(call.get("id")), _text(_object(call["function"]).get("name"))
            if (call_id == known_id) if index is None and call_id else (at == index):
                is_another = known_id and known_name and call_id != known_id if call_id else index is None
                if not (name and is_another):
                    return call
                break
        if len(self._calls) >= CALLS_MAX:
            raise UnfitAnswerError(f"it made more than {CALLS_MAX} tool calls")
        self._calls.append((index, {"type": "function", "function": {"name": "", "arguments": ""}}))
        return self._calls[-1][1]


def _called(function: Json, piece: Json) -> Json:
    """Return what is called with the next piece of it."""
    whole = dict(function)
    for name, value in piece.items():
        known = _text(whole.get(name))
        if isinstance(value, dict):  # some engines do not write arguments as text
            whole[name] = msgspec.json.encode(value).decode()
        elif isinstance(value, str) and not (name == "name" and value == known):  # said again it is no fragment
            whole[name] = known + value
    return whole


def _joined(known: object, piece: str | list[object]) -> object:
    """Return what is said with its next piece. Some engines say it in parts, or some of it, as Mistral's thoughts."""
    if isinstance(piece, str) and not _list(known):
        return _text(known) + piece
    return _parts(known) + _parts(piece)


def _parts(said: object) -> list[object]:
    return [{"type": "text", "text": said}] if isinstance(said, str) and said else _list(said)


def _update(whole: Json, piece: Json) -> None:
    whole.update({name: value for name, value in piece.items() if value is not None})


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
