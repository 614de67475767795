"""Files in a conversation: one that is text is said as text, every other is refused by name, with the way out.

Engines that do no more than compute read texts, pictures and sounds. In other words than Chat Completions, some leave a
file out without a word (llama-server b11549 answers as if it were not there), others refuse the request (vLLM, SGLang):
there a conversation with files goes in Chat Completions, where we know what becomes of them.
"""

from binascii import Error, a2b_base64
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.surrogates import read_mended

NAME_CHARS_MAX: Final = 100

_TEXTS: Final = frozenset(
    ("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript")
)
_PDF: Final = b"%PDF"
_DATA: Final = "data:"
_IN_BASE64: Final = ";base64"
_PLAIN: Final = "text/plain"
_LEFT_OUT: Final = frozenset(("document", "search_result", "container_upload", "server_tool_use", "mcp_tool_use"))
_SERVER_RESULT: Final = "_tool_result"
"""Blocks of Messages, and how the types of others end, that those engines were seen to leave out or to refuse."""
_IN_MESSAGES: Final = ("messages", "count_tokens")


def text_of(media_type: str, data: str) -> str | None:
    """Return what a file holds that is text, None where it is something else.

    Args:
        media_type: as it was told; empty where it was not, and what the file holds has to show it.
        data: its bytes in base64.
    """
    if media_type and not _is_text(media_type):
        return None
    try:
        held = a2b_base64("".join(data.split()), strict_mode=True)  # or it would leave out what it cannot read
    except (Error, ValueError):
        return None
    return _as_text(held, is_sure=bool(media_type))


def text_at(url: str) -> str | None:
    """Return the text that a `data:` URL holds in base64; None of any other."""
    head, _, data = url.partition(",")
    if not (head.startswith(_DATA) and head.endswith(_IN_BASE64)):
        return None
    return text_of(head.removeprefix(_DATA).removesuffix(_IN_BASE64) or _PLAIN, data)


def media_type_at(url: str) -> str:
    """Return the type that a `data:` URL tells, empty without one."""
    return url.removeprefix(_DATA).partition(",")[0].partition(";")[0] if url.startswith(_DATA) else ""


def unreadable(what: str) -> BadRequestError:
    """Return the refusal of a file. `what`: as "a message holds a file of type …"."""
    return BadRequestError(
        f"{what}, and this model's engine reads no files: send the file's text, or its pages as pictures"
    )


def named(name: str | None, media_type: str = "") -> str:
    """Return a file as people are told of it."""
    of_type = f" of type {media_type!r}" if media_type else ""
    return f"a file{of_type}" if not name else f"the file {name[:NAME_CHARS_MAX]!r}{of_type}"


def holds_files(dialect: str, body: bytes) -> bool:
    """Say whether a request in a dialect, given by its name, holds a file, or what else it takes a provider to read.

    What cannot be read is for the engine to judge.
    """
    try:
        if dialect in _IN_MESSAGES:
            kinds = _blocks_of(read_mended(_MESSAGES, body).messages)
            return any(kind in _LEFT_OUT or kind.endswith(_SERVER_RESULT) for kind in kinds)
        if dialect == "responses":
            return any(kind == "input_file" for kind in _parts_of(read_mended(_RESPONSES, body).input))
    except (msgspec.DecodeError, RecursionError):
        return False
    return False


def file_in_chat(body: bytes) -> str:
    """Return the first file that a Chat Completions request holds, for people; empty without one."""
    try:
        messages = read_mended(_CHAT, body).messages
    except (msgspec.DecodeError, RecursionError):
        return ""
    for number, message in enumerate(messages):
        for part in message.content if isinstance(message.content, list) else ():
            if part.type == "file":
                file = part.file or _File()
                return f"`messages[{number}]` holds {named(file.filename, media_type_at(file.file_data or ''))}"
    return ""


class _Block(Struct):
    type: str = ""
    content: Raw = Raw(b"null")


class _Message(Struct):
    content: Raw = Raw(b"null")


class _Messages(Struct):
    messages: list[_Message]


class _Item(Struct):
    content: Raw = Raw(b"null")
    output: Raw = Raw(b"null")


class _Responses(Struct):
    input: str | list[_Item]


class _File(Struct):
    filename: str | None = None
    file_data: str | None = None


class _ChatPart(Struct):
    type: str = ""
    file: _File | None = None


class _ChatMessage(Struct):
    content: str | list[_ChatPart] | None = None


class _Chat(Struct):
    messages: list[_ChatMessage]


_MESSAGES: Final = msgspec.json.Decoder(_Messages)
_RESPONSES: Final = msgspec.json.Decoder(_Responses)
_CHAT: Final = msgspec.json.Decoder(_Chat)
_BLOCKS: Final = msgspec.json.Decoder(list[_Block])


def _blocks_of(messages: Sequence[_Message]) -> Iterator[str]:
    for message in messages:
        for block in _listed(message.content):
            yield block.type
            if block.type == "tool_result":
                yield from (inner.type for inner in _listed(block.content))


def _parts_of(items: str | Sequence[_Item]) -> Iterator[str]:
    for item in () if isinstance(items, str) else items:
        for content in (item.content, item.output):
            yield from (part.type for part in _listed(content))


def _listed(content: Raw) -> Sequence[_Block]:
    """Return what content consists of; nothing of what is none: others beside it may be."""
    if bytes(memoryview(content)[:1]) != b"[":
        return ()
    try:
        return _BLOCKS.decode(content)
    except msgspec.ValidationError:
        return ()


def _is_text(media_type: str) -> bool:
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml"))


def _as_text(held: bytes, *, is_sure: bool) -> str | None:
    if not is_sure and (held.startswith(_PDF) or b"\0" in held):
        return None
    try:
        return held.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
