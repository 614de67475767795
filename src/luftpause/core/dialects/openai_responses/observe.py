"""What a Responses answer says about its turn, read beside the stream without altering a byte.

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


class ResponsesStreamObserver(StreamObserver):
    """Looks at an event stream. The result does not depend on how the stream was cut into pieces."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_Findings(), MarkedEvents(_MARKERS))


def observe_response(body: bytes) -> Observed:
    """Return what a whole JSON answer says; nothing of one that is not an answer."""
    findings = _Findings()
    findings.take_response(Raw(body))
    return findings.observed()


def text_in_response(document: bytes) -> str:
    """Return the text of a whole answer, or of one event of a stream; nothing of what cannot be read."""
    try:
        said = _SAID.decode(document)
    except _UNREADABLE:
        return ""
    if said.type:
        return said.delta if said.type == "response.output_text.delta" and isinstance(said.delta, str) else ""
    parts = [part for item in said.output or () if item.type == "message" for part in item.content or ()]
    return "".join(part.text for part in parts if part.type == "output_text")


class _TextPart(Struct):
    type: str = ""
    text: str = ""


class _TextItem(Struct):
    type: str = ""
    content: list[_TextPart] | None = None


class _Said(Struct):
    """What may hold text of an event, which has a type, or of a whole answer, which has none."""

    type: str = ""
    delta: object = None
    output: list[_TextItem] | None = None


class _InputDetails(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int
    output_tokens: int = 0
    input_tokens_details: _InputDetails | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Item(Struct):
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None


class _Response(Struct):
    status: str | None = None
    output: Raw = Raw(b"null")
    usage: Raw = Raw(b"null")
    incomplete_details: Raw = Raw(b"null")
    error: Raw = Raw(b"null")


class _Event(Struct):
    type: str = ""
    response: Raw = Raw(b"null")
    item: Raw = Raw(b"null")
    error: Raw = Raw(b"null")


_NULL: Final = Raw(b"null")
_SAID: Final = msgspec.json.Decoder(_Said)
_EVENT: Final = msgspec.json.Decoder(_Event)
_RESPONSE: Final = msgspec.json.Decoder(_Response | None)
_ITEM: Final = msgspec.json.Decoder(_Item | None)
_ITEMS: Final = msgspec.json.Decoder(list[Raw] | None)
_USAGE: Final = msgspec.json.Decoder(_Usage | None)
_INCOMPLETE: Final = msgspec.json.Decoder(_Incomplete | None)
_LAST: Final = ("response.completed", "response.incomplete", "response.failed")
_ITEM_EVENTS: Final = ("response.output_item.added", "response.output_item.done")
_MARKERS: Final = (
    Marker(b'"call_id"'),
    Marker(b'"response.completed"'),
    Marker(b'"response.incomplete"'),
    Marker(b'"response.failed"'),
    Marker(b'"error":', b"{"),
    Marker(b'"type":"error"'),
    Marker(b'"type": "error"'),
)
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)


class _Findings(Findings):
    """Those of this dialect."""

    __slots__ = ("_error", "_finish", "_tool_calls", "_tools", "_usage", "over")

    def __init__(self) -> None:
        self.over = False
        self._finish = ""
        self._usage: Usage | None = None
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
            usage=self._usage,
            tool_calls=tuple(self._tool_calls),
            tools=tuple(self._tools)[:TOOLS_MAX],
            error=self._error,
        )

    def take(self, document: bytes) -> bool:
        """See `Reader.take`: none of its events is passed over for another."""
        try:
            event = _EVENT.decode(document)
        except _UNREADABLE:
            return False
        if event.type in _ITEM_EVENTS:
            self._take_item(event.item)
        elif event.type in _LAST:
            self.over = True
            self.take_response(event.response)
        elif event.type == "error" or event.error != _NULL:
            self._take_error(Raw(document) if event.error == _NULL else event.error)
            self.over = self.over or bool(self._error)
        return False

    def take_response(self, document: Raw) -> None:
        """Add what a response says, if it can be read."""
        try:
            response = _RESPONSE.decode(document)
            if response is None:
                return
            self._take_error(response.error)
            self._usage = _usage(response.usage) or self._usage
            if response.status in ("completed", "incomplete"):
                self._finish = self._finish or _reason(response.incomplete_details) or response.status
            for item in _ITEMS.decode(response.output) or ():
                self._take_item(item)
        except _UNREADABLE:
            return

    def _take_item(self, raw: Raw) -> None:
        try:
            item = _ITEM.decode(raw)
        except _UNREADABLE:
            return
        if item is not None and item.call_id and len(self._tool_calls) < TOOL_CALLS_MAX:
            self._tool_calls[ToolCallId(item.call_id)] = None
            if item.name:
                name = f"{item.namespace}__{item.name}" if item.namespace else item.name
                self._tools[ToolName(name[:TOOL_CHARS_MAX])] = None

    def _take_error(self, raw: Raw) -> None:
        self._error = self._error or error_said(raw)


def _reason(raw: Raw) -> str:
    try:
        incomplete = _INCOMPLETE.decode(raw)
    except _UNREADABLE:
        return ""
    return "" if incomplete is None else incomplete.reason or ""


def _usage(raw: Raw) -> Usage | None:
    try:
        usage = _USAGE.decode(raw)
    except _UNREADABLE:
        return None
    if usage is None:
        return None
    details = usage.input_tokens_details
    return Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        cached_tokens=None if details is None else details.cached_tokens,
    )
