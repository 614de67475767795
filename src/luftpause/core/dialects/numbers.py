"""Whole numbers that a client writes with a fraction of nothing: `1.0` is what some languages make of 1."""

from typing import Final

import msgspec
from msgspec import Raw

WHOLE_MAX: Final = 2**53
"""Up to here such a number is exact."""


def whole(value: float) -> float | int:
    """Return a number as a whole one if it is one, else as it is."""
    return int(value) if abs(value) <= WHOLE_MAX and value % 1 == 0 else value


def whole_raw(written: Raw) -> Raw:
    """Return a number as engines want to read it: whole where it is; anything else as it is written."""
    if b"." not in (text := bytes(written)) and b"e" not in text.lower():
        return written
    try:
        value = msgspec.json.decode(text, type=float)
    except msgspec.DecodeError:
        return written
    found = whole(value)
    return Raw(b"%d" % found) if isinstance(found, int) else written
