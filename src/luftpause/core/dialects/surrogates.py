"""Mends JSON that holds half of an escaped surrogate pair: somebody cut a text in the middle of an emoji."""

import re
from typing import Final, TypeVar

import msgspec

_T = TypeVar("_T")


def mended(body: bytes) -> bytes:
    """Return a JSON document with each such half replaced by U+FFFD; everything else as it is written."""
    return _SURROGATES.sub(_whole, body)


def read_mended(decoder: "msgspec.json.Decoder[_T]", document: bytes) -> _T:
    """Return what is in a document, mended if it has to be.

    Raises:
        msgspec.DecodeError: it is not what the decoder reads.
    """
    try:
        return decoder.decode(document)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        whole = mended(document)
        if whole == document:
            raise
        return decoder.decode(whole)


_SURROGATES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\."  # any other escape, so that an escaped backslash begins none
)


def _whole(found: re.Match[bytes]) -> bytes:
    return found[0] if found["half"] is None else b"\\ufffd"
