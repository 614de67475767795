"""How wide and high a picture is, by its first bytes: PNG, JPEG, GIF and WebP."""

from typing import Final

HEAD_BYTES: Final = 9 * 1024
"""So much of a picture is looked at: a JPEG's size stands behind what its camera said, which may be longer."""

PIXELS_MAX: Final = 1 << 16
"""No picture is wider or higher than this; a head that says so is of something else."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG's segments that tell the size."""

Size = tuple[int, int]


def size_of(head: bytes) -> Size | None:
    """Return width and height in pixels; None of anything that does not tell them here."""
    if head.startswith(_PNG):
        found = _big(head, 16, 4), _big(head, 20, 4)
    elif head.startswith((b"GIF87a", b"GIF89a")):
        found = _little(head, 6, 2), _little(head, 8, 2)
    elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        found = _webp(head)
    elif head.startswith(b"\xff\xd8"):
        found = _jpeg(head)
    else:
        return None
    width, height = found
    return found if 0 < width <= PIXELS_MAX and 0 < height <= PIXELS_MAX else None


def _webp(head: bytes) -> Size:
    kind = head[12:16]
    if kind == b"VP8X":
        return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
    if kind == b"VP8L":
        bits = _little(head, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF


def _jpeg(head: bytes) -> Size:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker in _FRAMES:
            return _big(head, at + 7, 2), _big(head, at + 5, 2)
        at += 1 if marker == 0xFF else 2 + max(2, _big(head, at + 2, 2))
    return 0, 0


def _big(head: bytes, at: int, size: int) -> int:
    return int.from_bytes(head[at : at + size], "big")


def _little(head: bytes, at: int, size: int) -> int:
    return int.from_bytes(head[at : at + size], "little")
