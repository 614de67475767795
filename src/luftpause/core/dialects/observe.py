"""What a Chat Completions answer says about its turn, read beside the stream without altering a byte.

Of a stream only events are parsed that are not like a plain one before them but for its text. What cannot be read is
not reported: judging the engine's answer is the client's affair.
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.event_readers import Events, Reader
from luftpause.core.dialects.plain_events import PlainEvents
from luftpause.core.dialects.sse import EventCutter
from luftpause.core.model.ids import ToolCallId, ToolName
from luftpause.core.model.tool_names import TOOL_CHARS_MAX, TOOLS_MAX
from luftpause.core.model.turns import Usage

BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longest JSON answer that is kept to be looked at; of a longer one nothing is reported."""

TOOL_CALLS_MAX: Final = 256
"""More tool-call ids than these in one answer are not kept."""

ERROR_CHARS_MAX: Final = 300

_NO_ERROR: Final = ("", "null", '""', "false", "0", "{}", "[]")
"""Some engines name the member in every piece, and mean nothing by it."""


class Observed(Struct, frozen=True, kw_only=True):
    """What an answer said.

    Attributes:
        finish: the first finish reason given, "" without one.
        usage: the last usage given.
        tool_calls: ids of all choices in order of appearance, without repeats.
        tools: names of the tools called, in order of appearance, without repeats: at most TOOLS_MAX.
        error: the engine's error object as it stands in the answer, "" without one.
    """

    finish: str = ""
    usage: Usage | None = None
    tool_calls: tuple[ToolCallId, ...] = ()
    tools: tuple[ToolName, ...] = ()
    error: str = ""


class Observer(Protocol):
    """Looks at an answer as it passes."""

    first_token_seen: bool
    """Bytes of an answer were fed."""

    done: bool
    """The answer said that it is over or that it failed, so its client may go on before the connection shows it."""

    def feed(self, data: bytes) -> None:
        """Look at the next piece, cut anywhere."""
        ...

    def observed(self) -> Observed:
        """Return what was seen up to now."""
        ...


class Findings(Reader, Protocol):
    """What the documents of one answer said, put together."""

    over: bool
    """One of them said that the answer is over, or told of an error: nothing of the answer follows one."""

    def copy(self) -> "Findings":
        """Return findings that go on from these."""
        ...

    def observed(self) -> Observed:
        """Return the findings of the moment."""
        ...


class StreamObserver(Observer):
    """Looks at an event stream. The result does not depend on how the stream was cut into pieces.

    Args:
        findings: what its events say; None for those of Chat Completions.
        events: picks those that are read.
    """

    __slots__ = ("_cutter", "_events", "_findings", "done", "first_token_seen")

    def __init__(self, findings: Findings | None = None, events: Events | None = None) -> None:
        self.first_token_seen = False
        self.done = False
        self._cutter = EventCutter()
        self._findings = findings or _Findings()
        self._events = events or PlainEvents(b'content":"')

    def feed(self, data: bytes) -> None:
        """Look at the next piece, cut anywhere."""
        if data:
            self.first_token_seen = True
            block = self._cutter.feed(data)
            if block:
                self._events.tell(block, self._findings)
                self.done = self._findings.over

    def observed(self) -> Observed:
        """Return what was seen up to now, an unfinished last event included if it can be read."""
        rest = self._cutter.rest()
        if not rest:
            return self._findings.observed()
        findings = self._findings.copy()
        self._events.tell(rest, findings)
        return findings.observed()


class BodyObserver(Observer):
    """Looks at a JSON answer that comes as one document."""

    __slots__ = ("_pieces", "_read", "_size", "done", "first_token_seen")

    def __init__(self, read: Callable[[bytes], Observed] | None = None) -> None:
        self.first_token_seen = False
        self.done = False
        self._read = read or observe_body
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
        return self._read(b"".join(self._pieces))


def observe_body(body: bytes) -> Observed:
    """Return what a whole JSON answer says; nothing of one that is not an answer."""
    findings = _Findings()
    findings.take(body)
    return findings.observed()


class _Details(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Function(Struct):
    name: str | None = None


class _ToolCall(Struct):
    id: str | None = None
    index: object = None
    function: _Function | None = None


class _Message(Struct):
    tool_calls: list[_ToolCall] | None = None


class _Choice(Struct):
    finish_reason: str | None = None
    delta: _Message | None = None
    message: _Message | None = None
    index: object = None


_NULL: Final = Raw(b"null")


class _Answer(Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Raw = _NULL


class _OddAnswer(Struct):
    """One whose usage may be anything: what stands beside it counts."""

    choices: list[_Choice] | None = None
    error: Raw = _NULL


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_ODD_ANSWER: Final = msgspec.json.Decoder(_OddAnswer)
_DONE: Final = b"[DONE]"
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)


_CallPlace: TypeAlias = tuple[int, int, str]
"""Index of the choice, index of the call in it, id of the call where that is known."""


class _Findings(Findings):
    """`Findings` of Chat Completions."""

    __slots__ = ("_error", "_finish", "_names", "_tool_calls", "_usage", "over")

    def __init__(self) -> None:
        self.over = False
        self._finish = ""
        self._usage: Usage | None = None
        self._tool_calls: dict[ToolCallId, None] = {}
        self._names: dict[_CallPlace, str] = {}
        self._error = ""

    def copy(self) -> "_Findings":
        """Return findings that go on from these."""
        other = _Findings()
        other.over, other._finish, other._usage, other._error = self.over, self._finish, self._usage, self._error
        other._tool_calls, other._names = self._tool_calls.copy(), self._names.copy()
        return other

    def observed(self) -> Observed:
        """Return the findings of the moment."""
        tools: tuple[ToolName, ...] = ()
        if self._names:
            tools = tuple(dict.fromkeys(map(ToolName, self._names.values())))[:TOOLS_MAX]
        return Observed(
            finish=self._finish, usage=self._usage, tool_calls=tuple(self._tool_calls), tools=tools, error=self._error
        )

    def take(self, document: bytes) -> bool:
        """See `Reader.take`."""
        if not document.startswith(b"{") and document.strip() == _DONE:
            self.over = True
            return False
        try:
            answer = _ANSWER.decode(document)
        except _UNREADABLE:
            self._take_odd(document)
            return False
        usage = answer.usage
        if usage is not None:
            self._usage = _told(usage)
        return not self._take(answer.choices, answer.error) and usage is None

    def _take_odd(self, document: bytes) -> None:
        """Add what a document says beside a usage that cannot be read."""
        try:
            answer = _ODD_ANSWER.decode(document)
        except _UNREADABLE:
            return
        self._take(answer.choices, answer.error)

    def _take(self, choices: list[_Choice] | None, error: Raw) -> bool:
        """Add what choices and an error say; return whether they say anything that counts."""
        is_news = False
        if choices is not None:
            for choice in choices:
                if choice.finish_reason:
                    is_news = True
                    self._finish = self._finish or choice.finish_reason
                is_news = self._add_calls(choice, choice.delta) or is_news
                is_news = self._add_calls(choice, choice.message) or is_news
        if error is not _NULL and (said := error_said(error)):
            is_news = self.over = True
            self._error = self._error or said
        return is_news

    def _add_calls(self, choice: _Choice, message: _Message | None) -> bool:
        """Add the calls of a message; return whether there are any."""
        if message is None or not message.tool_calls:
            return False
        for position, call in enumerate(message.tool_calls):
            if call.id and len(self._tool_calls) < TOOL_CALLS_MAX:
                self._tool_calls[ToolCallId(call.id)] = None
            if call.function is not None and call.function.name:
                index = call.index if isinstance(call.index, int) else position
                place = choice.index if isinstance(choice.index, int) else 0, index, call.id or ""
                self._add_name(place, call.function.name[:TOOL_CHARS_MAX])
        return True

    def _add_name(self, place: _CallPlace, said: str) -> None:
        """Take the name of a call, or a piece of it.

        Most engines send it whole with the first piece of its call. Some cut it, some say it again with each piece. A
        call is known by its id, a piece without one by its place in the answer.
        """
        if not place[2]:
            place = next((known for known in reversed(self._names) if known[:2] == place[:2]), place)
        name = self._names.get(place, "")
        if name != said and (name or len(self._names) < TOOL_CALLS_MAX):
            self._names[place] = (name + said)[:TOOL_CHARS_MAX]


def _told(usage: _Usage) -> Usage:
    details = usage.prompt_tokens_details
    return Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=None if details is None else details.cached_tokens,
    )


def error_said(raw: Raw) -> str:
    """Return an error member as it stands in the answer, empty where it says that there is none."""
    text = bytes(raw).decode("utf-8", "replace").strip()
    return "" if text in _NO_ERROR else text[:ERROR_CHARS_MAX]
