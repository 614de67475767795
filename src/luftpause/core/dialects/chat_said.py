"""What is said in a request's messages, and in a Chat Completions answer.

The requests of Messages and Responses are read here too: what differs is where the texts stand.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.said import Utterance

_NULL: Final = Raw(b"null")
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError)


class _Message(Struct):
    role: str = ""
    content: Raw = _NULL


class _Part(Struct):
    text: str = ""


class _Chat(Struct):
    messages: list[_Message] = []


class _Messages(Struct):
    messages: list[_Message] = []
    system: Raw = _NULL


class _Item(_Message):
    type: str = ""
    output: Raw = _NULL


class _Responses(Struct):
    input: str | list[_Item] = []
    instructions: Raw = _NULL


class _Choice(Struct):
    index: object = None
    delta: _Message | None = None
    message: _Message | None = None


class _Answer(Struct):
    choices: list[_Choice] | None = None


_T = TypeVar("_T")
_CHAT: Final = msgspec.json.Decoder(_Chat)
_MESSAGES: Final = msgspec.json.Decoder(_Messages)
_RESPONSES: Final = msgspec.json.Decoder(_Responses)
_ANSWER: Final = msgspec.json.Decoder(_Answer)
_CONTENT: Final = msgspec.json.Decoder(str | list[_Part] | None)


def said_in_chat(body: bytes) -> Sequence[Utterance]:
    """Return what is said in a Chat Completions request; nothing where it cannot be read: that is for the engine."""
    found = _read(_CHAT, body)
    return () if found is None else list(_utterances(_NULL, found.messages))


def said_in_messages(body: bytes) -> Sequence[Utterance]:
    """Return what is said in a Messages request; nothing where it cannot be read."""
    found = _read(_MESSAGES, body)
    return () if found is None else list(_utterances(found.system, found.messages))


def said_in_responses(body: bytes) -> Sequence[Utterance]:
    """Return what is said in a Responses request; nothing where it cannot be read."""
    found = _read(_RESPONSES, body)
    if found is None:
        return ()
    if isinstance(found.input, str):
        return [*_utterances(found.instructions, ()), Utterance("user", found.input)]
    said: list[Utterance] = []
    for utterance in _utterances(found.instructions, map(_as_message, found.input)):
        if said and said[-1].role == utterance.role == "assistant":
            said[-1] = Utterance("assistant", said[-1].text + utterance.text)  # an answer may have been several items
        else:
            said.append(utterance)
    return said


def text_in_chat_answer(document: bytes) -> str:
    """Return the text of a whole answer, or of one chunk: that of its first choice."""
    answer = _read(_ANSWER, document)
    if answer is None:
        return ""
    said = [choice.delta or choice.message for choice in answer.choices or () if not choice.index]
    return "".join(_text(each.content) for each in said if each is not None)


def _as_message(item: _Item) -> _Message:
    """Return an item of Responses as a chat has it: what the model called is its message, and says nothing."""
    if item.role:
        return item
    return _Message("tool", item.output) if item.type.endswith("_output") else _Message("assistant")


def _utterances(first: Raw, messages: Iterable[_Message]) -> Iterable[Utterance]:
    """Yield the messages; before them, as the system's, what a request says beside them."""
    beside = _text(first)
    if beside:
        yield Utterance("system", beside)
    for message in messages:
        yield Utterance(message.role, _text(message.content))


def _read(decoder: "msgspec.json.Decoder[_T]", document: bytes) -> _T | None:
    try:
        return decoder.decode(document)
    except _UNREADABLE:
        return None


def _text(content: Raw) -> str:
    """Return the text of a message, parts joined; what is odd about it says nothing."""
    if content == _NULL:
        return ""
    try:
        said = _CONTENT.decode(content)  # not `_read`: its stub calls a Raw bytes, which it is not
    except _UNREADABLE:
        return ""
    if isinstance(said, list):
        return "".join(part.text for part in said)
    return said or ""
