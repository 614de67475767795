"""Content blocks of a user as parts of a Chat Completions message: texts and pictures."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from luftpause.core.dialects.anthropic_messages.request import NULL, Block, unspeakable
from luftpause.core.dialects.files import NAME_CHARS_MAX, named, text_of, unreadable
from luftpause.core.dialects.request import BadRequestError

BETWEEN: Final = "\n\n"
"""Stands between texts that were blocks of their own."""

Part: TypeAlias = Mapping[str, object]


def blocks_of(content: str | Sequence[Block] | None) -> Sequence[Block]:
    """Return content as blocks: a text is short for one."""
    if isinstance(content, str):
        return [Block(type="text", text=content)]
    return content or ()


def result_blocks(result: Block) -> Sequence[Block]:
    """Return the content of a tool result.

    Raises:
        BadRequestError: it is neither a text nor a list of blocks.
    """
    return blocks_of(_content(result))


def parts_of(block: Block) -> list[Part]:
    """Return what a block says, as parts of a message.

    Raises:
        BadRequestError: no engine could be told of it.
    """
    if block.type == "text":
        return [text_part(block.text)] if block.text else []
    if block.type == "image":
        return [{"type": "image_url", "image_url": {"url": _image_url(_source(block))}}]
    if block.type == "document":
        return _document(block)
    if block.type == "search_result":
        return [text_part(block.title or ""), *(part for each in result_blocks(block) for part in parts_of(each))]
    if block.type == "container_upload":
        raise unreadable("a message names a file in a container")
    raise unspeakable(f"a user message holds a block of type {block.type!r}")


def text_part(text: str) -> Part:
    """Return a text as a part of a message."""
    return {"type": "text", "text": text}


def joined(parts: Sequence[Part]) -> str | Sequence[Part]:
    """Return parts as the content of a message: one text where all are texts, which every template takes."""
    if all(part["type"] == "text" for part in parts):
        return BETWEEN.join(str(part["text"]) for part in parts)
    return parts


class _Source(Struct):
    type: str
    media_type: str = ""
    data: str = ""
    url: str = ""
    content: Raw = NULL


def _source(block: Block) -> _Source:
    try:
        return msgspec.json.decode(block.source, type=_Source)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"a block of type {block.type!r} has no readable source: {error}") from error


def _content(block: Block) -> str | list[Block] | None:
    try:
        return msgspec.json.decode(block.content, type=str | list[Block] | None)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"a block of type {block.type!r} has no readable content: {error}") from error


def _image_url(source: _Source) -> str:
    if source.type == "base64":
        return f"data:{source.media_type};base64,{source.data}"
    if source.type == "url":
        return source.url
    raise unspeakable(f"an image comes from a source of type {source.type!r}")


def _document(block: Block) -> list[Part]:
    """Return a document that is text.

    Raises:
        BadRequestError: it is none, or lies elsewhere.
    """
    source = _source(block)
    heading = [text_part(text) for text in (block.title, block.context) if text]
    if source.type == "text":
        return [*heading, text_part(source.data)]
    if source.type == "content":
        inner = result_blocks(Block(type="document", content=source.content))
        return [*heading, *(part for each in inner for part in parts_of(each))]
    if source.type == "base64":
        text = text_of(source.media_type, source.data)
        if text is not None:
            return [*heading, text_part(text)]
        raise unreadable(f"a message holds {named(block.title, source.media_type)}")
    if source.type == "url":
        raise unreadable(f"a message shows a document at {source.url[:NAME_CHARS_MAX]!r}")
    raise unreadable(f"a document comes from a source of type {source.type!r}")
