"""Parts that are no text, as parts of a Chat Completions message: pictures and sound."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from luftpause.core.dialects.files import named, text_at, text_of, unreadable
from luftpause.core.dialects.gemini.request import Blob, FileData, Part

Piece: TypeAlias = Mapping[str, object]

_SOUNDS: Final = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
_FROM_URL_ALPHABET: Final = str.maketrans("-_", "+/")
_ADDRESSES: Final = ("http://", "https://", "data:")


def media_piece(part: Part) -> Piece | None:
    """Return what a part shows; None if it is no part that shows something.

    Raises:
        BadRequestError: it shows what no engine could be told of.
    """
    if part.inline_data is not None:
        return _inline(part.inline_data)
    return None if part.file_data is None else _at_address(part.file_data)


def text_piece(text: str) -> Piece:
    """Return a text as a part of a message."""
    return {"type": "text", "text": text}


def joined(pieces: Sequence[Piece], between: str) -> str | Sequence[Piece]:
    """Return parts as the content of a message: one text where all are texts, which every template takes."""
    if all(piece["type"] == "text" for piece in pieces):
        return between.join(str(piece["text"]) for piece in pieces)
    return pieces


def _inline(blob: Blob) -> Piece:
    data = blob.data.translate(_FROM_URL_ALPHABET)
    if blob.mime_type.startswith("image/"):
        return _picture(f"data:{blob.mime_type};base64,{data}")
    if blob.mime_type in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _SOUNDS[blob.mime_type]}}
    text = text_of(blob.mime_type, data) if blob.mime_type else None
    if text is not None:
        return text_piece(text)
    raise unreadable(f"a part holds {named('', blob.mime_type)}")


def _at_address(file: FileData) -> Piece:
    uri = file.file_uri
    if uri.startswith(_ADDRESSES) and file.mime_type.startswith("image/"):
        return _picture(uri)
    text = text_at(uri)
    if text is not None:
        return text_piece(text)
    where = "" if uri.startswith(_ADDRESSES) else ", which is no web address"
    raise unreadable(f"a part shows {named(uri, file.mime_type)}{where}")


def _picture(url: str) -> Piece:
    return {"type": "image_url", "image_url": {"url": url}}
