"""Values that a JSON parser lets through and that nothing behind it can carry on."""

import math
from collections.abc import Mapping
from typing import Final

from luftpause.services.runtime.schema_words import shown

DEPTH_MAX: Final = 100
"""Lists and objects within each other; the parsers and writers that we pass values to end at a few hundred."""


def oddity(arguments: Mapping[str, object]) -> str:
    """Return what is unsound about decoded arguments, and in which of them; empty for nothing."""
    for name, value in arguments.items():
        told = _oddity([name, value])
        if told:
            return f"{shown(name)}: {told}"
    return ""


def _oddity(level: list[object]) -> str:
    for _ in range(DEPTH_MAX):
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each)
                inner.extend(each.values())
            elif isinstance(each, list | tuple):
                inner.extend(each)
            elif isinstance(each, str) and not _is_text(each):
                return "half of a surrogate pair is no text"
            elif isinstance(each, float) and not math.isfinite(each):
                return "a number must be finite"
        if not inner:
            return ""
        level = inner
    return f"lists and objects are nested more than {DEPTH_MAX} deep"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
