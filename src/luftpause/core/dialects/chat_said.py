"""What is said in Chat Completions: the texts of a request's messages, and the text of an answer as it comes."""

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
    messages: list[_Message] = []


_CONVERSATION: Final = msgspec.json.Decoder(_Conversation)
_CONTENT: Final = msgspec.json.Decoder(str | list[_Part] | None)


def conversation_in(body: bytes) -> Sequence[Utterance]:
    """Return what is said in a request; nothing where it cannot be read, which is for the engine to judge."""
    try:
        messages = _CONVERSATION.decode(body).messages
    except (msgspec.DecodeError, RecursionError):
        return ()
    return [Utterance(message.role, _text(message.content)) for message in messages]


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
