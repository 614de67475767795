"""What a Messages answer says about its turn, read beside the stream without altering a byte.

Only an event that holds a marker is parsed. A marker is a word in quotes: inside a JSON string its quotes would be
escaped, so text that a model writes cannot be mistaken for one.
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.marked_events import MarkedEvents, Marker
from luftpause.core.dialects.observe import TOOL_CALLS_MAX, Findings, Observed, StreamObserver, error_said
from luftpause.core.model.ids import ToolCallId, ToolName
from luftpause.core.model.tool_names import TOOL_CHARS_MAX, TOOLS_MAX
from luftpause.core.model.turns import Usage


class MessagesStreamObserver(StreamObserver):
    """Looks at an event stream. The result does not depend on how the stream was cut into pieces."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_Findings(), MarkedEvents(_MARKERS))


def observe_message(body: bytes) -> Observed:
    """Return what a whole JSON answer says; nothing of one that is not an answer."""
    findings = _Findings()
    findings.take(body)
    return findings.observed()


def text_in_message(document: bytes) -> str:
    """Return the text of a whole answer, or of one event of a stream; nothing of what cannot be read."""
    try:
        said = _SAID.decode(document)
    except _UNREADABLE:
        return ""
    blocks = (said.content_block, said.delta, *(said.content or ()))
    return "".join(block.text for block in blocks if block is not None and block.type in ("text", "text_delta"))


_NULL: Final = Raw(b"null")


class _TextBlock(Struct):
    type: str = ""
    text: str = ""


class _Said(Struct):
    """What may hold text of an event or of a whole answer."""

    content: list[_TextBlock] | None = None
    content_block: _TextBlock | None = None
    delta: _TextBlock | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Block(Struct):
    type: str = ""
    id: str | None = None
    name: str | None = None


class _Message(Struct):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: Raw = _NULL


class _Event(Struct):
    """An event of a stream, or a whole answer: their members do not collide."""

    type: str = ""
    message: Raw = _NULL
    delta: Raw = _NULL
    content_block: Raw = _NULL
    error: Raw = _NULL
    usage: Raw = _NULL


_SAID: Final = msgspec.json.Decoder(_Said)
_EVENT: Final = msgspec.json.Decoder(_Event)
_BLOCK: Final = msgspec.json.Decoder(_Block | None)
_MESSAGE: Final = msgspec.json.Decoder(_Message | None)
_USAGE: Final = msgspec.json.Decoder(_Usage | None)
_WORDS: Final = (b'"message_start"', b'"tool_use"', b'"message_delta"', b'"message_stop"', b'"error"')
_MARKERS: Final = tuple(map(Marker, _WORDS))
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)


class _Findings(Findings):
    """Those of this dialect."""

    __slots__ = ("_error", "_finish", "_tool_calls", "_tools", "_usage", "over")

    def __init__(self) -> None:
        self.over = False
        self._finish = ""
        self._usage: _Usage | None = None
        self._tool_calls: dict[ToolCallId, None] = {}
        self._tools: dict[ToolName, None] = {}
        self._error = ""

    def copy(self) -> "_Findings":
        """Return findings that go on from these."""
        other = _Findings()
        other.over, other._finish, other._usage, other._error = self.over, self._finish, self._usage, self._error
        other._tool_calls, other._tools = self._tool_calls.copy(), self._tools.copy()
        return other

    def observed(self) -> Observed:
        """Return the findings of the moment."""
        return Observed(
            finish=self._finish,
            usage=_told(self._usage),
            tool_calls=tuple(self._tool_calls),
            tools=tuple(self._tools)[:TOOLS_MAX],
            error=self._error,
        )

    def take(self, document: bytes) -> bool:
        """See `Reader.take`: none of its events is passed over for another."""
        try:
            self._take_event(_EVENT.decode(document), document)
        except _UNREADABLE:
            return False
        return False

    def _take_event(self, event: _Event, document: bytes) -> None:
        if event.type == "message_start":
            self._take_message(_MESSAGE.decode(event.message))
        elif event.type == "message":
            self._take_message(_MESSAGE.decode(document))
        elif event.type == "content_block_start":
            self._take_block(_BLOCK.decode(event.content_block))
        elif event.type == "message_delta":
            self._take_message(_MESSAGE.decode(event.delta))
            self._take_usage(event.usage)
        elif event.type == "message_stop":
            self.over = True
        elif event.error != _NULL:
            self._error = self._error or error_said(event.error)
            self.over = self.over or bool(self._error)

    def _take_message(self, message: _Message | None) -> None:
        if message is None:
            return
        self._finish = self._finish or message.stop_reason or ""
        for block in message.content or ():
            self._take_block(block)
        self._take_usage(message.usage)

    def _take_block(self, block: _Block | None) -> None:
        if block is not None and block.type == "tool_use" and block.id and len(self._tool_calls) < TOOL_CALLS_MAX:
            self._tool_calls[ToolCallId(block.id)] = None
            if block.name:
                self._tools[ToolName(block.name[:TOOL_CHARS_MAX])] = None

    def _take_usage(self, raw: Raw) -> None:
        """Add counts, which are cumulative: the last one that is given counts."""
        usage = _USAGE.decode(raw)
        if usage is not None:
            before = self._usage or _Usage()
            self._usage = _Usage(
                input_tokens=_later(before.input_tokens, usage.input_tokens),
                output_tokens=_later(before.output_tokens, usage.output_tokens),
                cache_read_input_tokens=_later(before.cache_read_input_tokens, usage.cache_read_input_tokens),
                cache_creation_input_tokens=_later(
                    before.cache_creation_input_tokens, usage.cache_creation_input_tokens
                ),
            )


def _later(before: int | None, now: int | None) -> int | None:
    return before if now is None else now


def _told(usage: _Usage | None) -> Usage | None:
    """Return the usage in our words: there, cached tokens are part of the prompt's."""
    if usage is None:
        return None
    cached = usage.cache_read_input_tokens
    prompt = (usage.input_tokens or 0) + (cached or 0) + (usage.cache_creation_input_tokens or 0)
    return Usage(prompt_tokens=prompt, completion_tokens=usage.output_tokens or 0, cached_tokens=cached)
