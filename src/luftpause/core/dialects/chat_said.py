"""What is said in a request's messages, and the text of a Chat Completions answer as it comes.

Messages and Responses are read here too: what differs is where the texts stand.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.chat_answer import ChatStreamReader, Piece, Text, read_chat_answer
from luftpause.core.dialects.said import TEXT_CHARS_MAX, Utterance


class _Message(Struct):
    role: str = ""
    content: Raw = Raw(b"null")


class _Part(Struct):
    text: str = ""


class _Conversation(Struct):
    """A request: Messages has `system` beside its messages, Responses `instructions` beside its `input`."""

    messages: list[_Message] = []
    input: str | list[_Message] = []
    system: Raw = Raw(b"null")
    instructions: Raw = Raw(b"null")


_CONVERSATION: Final = msgspec.json.Decoder(_Conversation)
_CONTENT: Final = msgspec.json.Decoder(str | list[_Part] | None)


def conversation_in(body: bytes) -> Sequence[Utterance]:
    """Return what is said in a request; nothing where it cannot be read, which is for the engine to judge."""
    try:
        found = _CONVERSATION.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return ()
    first = [Utterance("system", text) for text in (_text(found.system), _text(found.instructions)) if text]
    if isinstance(found.input, str):
        return [*first, Utterance("user", found.input)]
    messages = found.messages or [item for item in found.input if item.role]  # calls and their results have no role
    return [*first, *(Utterance(message.role, _text(message.content)) for message in messages)]


class AnswerText:
    """Collects the text of an answer.

    Args:
        stream: whether it comes as server-sent events.
    """

    def __init__(self, *, stream: bool) -> None:
        self._reader = ChatStreamReader() if stream else None
        self._texts: list[str] = []
        self._size = 0
        self._body: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take the next piece of the answer, cut anywhere."""
        if self._size > TEXT_CHARS_MAX:
            return
        if self._reader is None:
            self._size += len(data)
            self._body.append(data)
        else:
            self._take(self._reader.feed(data))

    def text(self) -> str | None:
        """Return the text so far; None where it is too long to identify anything."""
        if self._size > TEXT_CHARS_MAX:
            return None
        if self._reader is None:
            self._texts, self._size = [], 0
            self._take(read_chat_answer(b"".join(self._body)))
        return "".join(self._texts)

    def _take(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, Text):
                self._texts.append(piece.text)
                self._size += len(piece.text)


def _text(content: Raw) -> str:
    """Return the text of a message, parts joined; what is odd about it says nothing."""
    try:
        said = _CONTENT.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if isinstance(said, list):
        return "".join(part.text for part in said)
    return said or ""
