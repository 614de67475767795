"""How many tokens the pictures in a request come to, and how many of its bytes they are: a guess, for its need of room.

In base64 a picture of a thousand tokens is a hundred thousand bytes. Its size stands in its first bytes, and each
dialect's own engines have a rule for it. What is only pointed at, or of a kind that is not read here, is taken to be of
a usual size. Looks at bytes, parses nothing else; what is no picture after all is text.
"""

import re
from binascii import Error, a2b_base64
from collections.abc import Callable
from math import ceil
from typing import Final, NamedTuple, TypeAlias

from luftpause.core.dialects.picture_sizes import HEAD_BYTES, size_of

PICTURES_MAX: Final = 1000
"""More in one request are text."""

USUAL_TOKENS: Final = 1000
"""Of a picture whose size is unknown."""

LOW_TOKENS: Final = 85
"""Of one that is wanted in low detail."""

_SIGNS: Final = re.compile(
    rb'"(?:'
    rb'(?P<part>type"\s*:\s*"(?:image_url|input_image|image)")'
    rb'|(?P<linked>(?:url|image_url)"\s*:\s*"(?=data:image))'
    rb'|(?P<named>(?:media_type|mime_type|mimeType)"\s*:\s*"image[^"]{1,40}")'
    rb")"
)
"""Chat Completions and Responses have a data URL, Messages and Gemini a type beside the data."""
_DATA_AFTER: Final = re.compile(rb'\s*,\s*"data"\s*:\s*"')
_DATA_BEFORE: Final = re.compile(rb'"\s*,\s*$')
_BETWEEN_MAX: Final = 32
_URL_HEAD_MAX: Final = 64
_LOW: Final = re.compile(rb'"\s*,\s*"detail"\s*:\s*"low"')


class Pictures(NamedTuple):
    """What the pictures in a request come to. `size`: bytes of its body."""

    tokens: int
    size: int


NO_PICTURES: Final = Pictures(0, 0)

Rule: TypeAlias = Callable[[int, int], int]
"""Tokens of a picture so wide and so high, in pixels."""


def pictures_in(body: bytes, dialect: str) -> Pictures:
    """Return what the pictures in a request body come to, by the rule of its dialect."""
    rule, hint = RULES.get(dialect, _USUAL_RULE)
    if hint not in body:
        return NO_PICTURES
    parts = known = tokens = size = at = 0
    while max(parts, known) < PICTURES_MAX and (sign := _SIGNS.search(body, at)) is not None:
        at = sign.end()
        if sign["part"] is not None:
            parts += 1
            continue
        start, end = _data_url(body, at) if sign["named"] is None else _data_beside(body, sign.start(), at)
        at = max(at, end)
        known += 1
        size += end - start
        tokens += _tokens(body, start, end, rule)
    pointed_at = max(0, parts - known)
    return Pictures(tokens + pointed_at * USUAL_TOKENS, size)


def in_tiles_of_512(width: int, height: int) -> int:
    """OpenAI's rule: within 2048 by 2048 and then 768 at the shorter side, 170 for each tile of 512 and 85 for all."""
    shrink = min(1.0, 2048 / max(width, height))
    shrink *= min(1.0, 768 / (min(width, height) * shrink))
    return 85 + 170 * ceil(width * shrink / 512) * ceil(height * shrink / 512)


def by_area(width: int, height: int) -> int:
    """Anthropic's rule: one for 750 pixels, within 1568 at the longer side and 1600 in all."""
    shrink = min(1.0, 1568 / max(width, height))
    return min(1600, max(1, int(width * shrink * height * shrink / 750)))


def in_tiles_of_768(width: int, height: int) -> int:
    """Gemini's rule: 258 for a small one, else for each tile of 768."""
    return 258 if max(width, height) <= 384 else 258 * ceil(width / 768) * ceil(height / 768)


RULES: Final[dict[str, tuple[Rule, bytes]]] = {
    "messages": (by_area, b'"image'),
    "gemini": (in_tiles_of_768, b'"image'),
}
"""By the dialects' names, with what no picture is said without there; all others are as in OpenAI's."""

_USUAL_RULE: Final = in_tiles_of_512, b'"image_url"'


def _data_url(body: bytes, start: int) -> tuple[int, int]:
    """Return where the data of a URL begins and ends."""
    end = body.find(b'"', start)
    end = len(body) if end < 0 else end
    comma = body.find(b",", start, min(end, start + _URL_HEAD_MAX))
    return (start if comma < 0 else comma + 1), end


def _data_beside(body: bytes, named_at: int, named_to: int) -> tuple[int, int]:
    """Return where the data begins and ends whose type is named here; nothing where there is none beside it."""
    after = _DATA_AFTER.match(body, named_to, named_to + _BETWEEN_MAX)
    if after is not None:
        end = body.find(b'"', after.end())
        return after.end(), len(body) if end < 0 else end
    before = _DATA_BEFORE.search(body, max(0, named_at - _BETWEEN_MAX), named_at)
    if before is None:
        return named_to, named_to
    start = body.rfind(b'"', 0, before.start()) + 1
    is_data = body[max(0, start - _BETWEEN_MAX) : start].rstrip(b'" \t\r\n:').endswith(b'"data')
    return (start, before.start()) if is_data else (named_to, named_to)


def _tokens(body: bytes, start: int, end: int, rule: Rule) -> int:
    if start == end:
        return USUAL_TOKENS
    if _LOW.match(body, end) is not None:
        return LOW_TOKENS
    try:
        head = a2b_base64(body[start : min(end, start + HEAD_BYTES // 3 * 4)])
    except Error:
        return USUAL_TOKENS
    found = size_of(head)
    return USUAL_TOKENS if found is None else rule(*found)
