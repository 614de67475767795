"""The contents of a Gemini request as messages of Chat Completions.

Everything between two messages of the model becomes the tool messages that answer the first, then one message of the
user. So roles alternate as chat templates want them, and what was said once is written the same way in every later
turn, which keeps an engine's cached prefix good.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, cast

import msgspec

from luftpause.core.dialects.gemini.media import Piece, joined, media_piece, text_piece
from luftpause.core.dialects.gemini.request import Content, FunctionCall, FunctionResponse, Members, Part, unspeakable
from luftpause.core.dialects.request import BadRequestError

BETWEEN: Final = "\n\n"
"""Stands between texts that were parts of their own."""

_ALONE: Final = ("output", "error")
"""Where a result has one of these members only, its value is the result."""

_OF_GOOGLES_TOOLS: Final = ("executable_code", "code_execution_result", "tool_call", "tool_response")
"""What tools did that run at Google: what the model made of it stands in its text."""

_Said: TypeAlias = dict[str, object]


def chat_messages(system: Content | None, contents: Iterable[Content]) -> list[_Said]:
    """Return the messages of a Chat Completions request.

    Raises:
        BadRequestError: there is something in them that cannot be said there; the message names it.
    """
    conversation = _Conversation()
    for content in contents:
        parts = _parts_of(content)
        if content.role == "model":
            conversation.add_model(parts)
        elif content.role in (None, "", "user", "function"):
            conversation.add_user(parts)
        else:
            raise unspeakable(f"a message has the role {content.role!r}")
    texts = _system_texts(system)
    first: list[_Said] = [{"role": "system", "content": BETWEEN.join(texts)}] if texts else []
    return first + conversation.ended()


class _Conversation:
    """Puts messages together."""

    def __init__(self) -> None:
        self._messages: list[_Said] = []
        self._model = _ModelSide()
        self._user = _UserSide()
        self._open: list[tuple[str, str]] = []
        self._made = 0

    def add_model(self, parts: Iterable[Part]) -> None:
        """Add a message of the model."""
        for part in parts:
            if _kind(part) in _OF_GOOGLES_TOOLS:
                continue
            self._messages += self._user.taken()
            if part.function_call is not None:
                self._add_call(part.function_call)
            elif part.text is not None:
                (self._model.thoughts if part.thought else self._model.texts).append(part.text)
            else:
                raise unspeakable(f"a message of the model holds {_kind(part)}")

    def add_user(self, parts: Iterable[Part]) -> None:
        """Add a message of the user."""
        for part in parts:
            self._messages += self._model.taken()
            if part.function_response is not None:
                self._add_result(part.function_response)
            elif not part.thought:
                self._user.pieces.append(_piece(part))

    def ended(self) -> list[_Said]:
        """Return the messages."""
        return [*self._messages, *self._model.taken(), *self._user.taken()]

    def _add_call(self, call: FunctionCall) -> None:
        call_id = call.id or f"call_{self._made}"
        self._made += 1
        if not self._model.calls:
            self._open.clear()
        self._open.append((call_id, call.name))
        function = {"name": call.name, "arguments": msgspec.json.encode(call.args or {}).decode()}
        self._model.calls.append({"id": call_id, "type": "function", "function": function})

    def _add_result(self, result: FunctionResponse) -> None:
        """Add a result. Its pictures go into the message of the user: a tool message takes none."""
        call_id = self._answered(result)
        text = _result_text(result.response)
        shown = [_piece(part) for part in result.parts or ()]
        if shown:
            text = BETWEEN.join(each for each in (text, f"({len(shown)} more, shown in the next message)") if each)
            self._user.shown += [text_piece(f"Returned by the tool call {call_id}:"), *shown]
        self._user.results.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def _answered(self, result: FunctionResponse) -> str:
        """Return the id of the call that a result belongs to; without one it is the first of its name, or the first."""
        if result.id:
            self._open = [call for call in self._open if call[0] != result.id]
            return result.id
        if not self._open:
            raise BadRequestError(f"a `functionResponse` of {result.name!r} answers no `functionCall` before it")
        call = next((call for call in self._open if call[1] == result.name), self._open[0])
        self._open.remove(call)
        return call[0]


class _UserSide:
    """What comes between two messages of the model."""

    def __init__(self) -> None:
        self.results: list[_Said] = []
        self.shown: list[Piece] = []
        self.pieces: list[Piece] = []

    def taken(self) -> list[_Said]:
        """Return its messages and begin the next."""
        pieces = [*self.shown, *self.pieces]
        said = self.results
        if pieces:
            said.append({"role": "user", "content": joined(pieces, BETWEEN)})
        self.results, self.shown, self.pieces = [], [], []
        return said


class _ModelSide:
    """What comes between two messages of the user.

    Thoughts go along: models that think between tool calls were trained to see them, and templates leave them out
    where they do not belong.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[_Said] = []

    def taken(self) -> list[_Said]:
        """Return it as a message, none if it said nothing, and begin the next."""
        message: _Said = {"role": "assistant", "content": "".join(self.texts)}
        if self.thoughts:
            message["reasoning_content"] = "".join(self.thoughts)
        if self.calls:
            message["tool_calls"] = self.calls
        said = [message] if self.texts or self.thoughts or self.calls else []
        self.texts, self.thoughts, self.calls = [], [], []
        return said


def _system_texts(system: Content | None) -> Sequence[str]:
    parts = [] if system is None else _parts_of(system)
    for part in parts:
        if part.text is None:
            raise unspeakable(f"the system instruction holds {_kind(part)}")
    return [part.text for part in parts if part.text]


def _piece(part: Part) -> Piece:
    if part.text is not None:
        return text_piece(part.text)
    piece = media_piece(part)
    if piece is None:
        raise unspeakable(f"a message of the user holds {_kind(part)}")
    return piece


def _result_text(response: object) -> str:
    """Return a result as a text; as JSON where it has members of its own."""
    if not isinstance(response, dict):
        return "" if response is None else msgspec.json.encode(response).decode()
    members = cast("Members", response)
    for name in _ALONE:
        value = members.get(name)
        if len(members) == 1 and isinstance(value, str):
            return f"Error: {value}" if name == "error" else value
    return msgspec.json.encode(members).decode() if members else ""


def _parts_of(content: Content) -> list[Part]:
    """Return the parts that say something: a signature of Google's alone does not, nor does no text.

    Raises:
        BadRequestError: one says two things, of which one would be left out.
    """
    said: list[Part] = []
    for part in content.parts or ():
        kind = _kind(part)
        if kind != "text":
            if part.text:
                raise BadRequestError(f"a part holds a text and {kind}: each takes a part of its own")
            part.text = None
        if kind != "text" or part.text:
            said.append(part)
    return said


def _kind(part: Part) -> str:
    for name in part.__struct_fields__:
        if name not in ("text", "thought") and getattr(part, name) is not None:
            return name
    return "text"
