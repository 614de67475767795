"""Sizes are read from the first bytes of pictures, and of nothing else."""

from pathlib import Path

import pytest

from luftpause.core.dialects.picture_sizes import HEAD_BYTES, size_of

PAGE = Path(__file__).parents[3] / "docs" / "pictures" / "page-dark.png"


def segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + (len(content) + 2).to_bytes(2, "big") + content


def jpeg(width: int, height: int, *, frame: int = 0xC0, before: bytes = b"") -> bytes:
    size = b"\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + b"\x03"
    return b"\xff\xd8" + before + segment(0xC4, b"huffman") + segment(frame, size)


def webp(kind: bytes, content: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + content


HEADS = {
    "png": (PAGE.read_bytes(), (1280, 860)),
    "gif": (b"GIF89a" + bytes((64, 1, 240, 0)), (320, 240)),
    "jpeg": (jpeg(1920, 1080), (1920, 1080)),
    "progressive jpeg": (jpeg(40, 30, frame=0xC2), (40, 30)),
    "jpeg with what its camera said": (jpeg(1920, 1080, before=segment(0xE1, b"x" * 5000)), (1920, 1080)),
    "jpeg with fill bytes": (jpeg(5, 6, before=b"\xff"), (5, 6)),
    "webp with features": (webp(b"VP8X", b"\0" * 4 + b"\xff\x03\x00\xff\x01\x00"), (1024, 512)),
    "webp without loss": (webp(b"VP8L", b"\x2f" + (99 | 49 << 14).to_bytes(4, "little")), (100, 50)),
    "webp": (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01"), (640, 480)),
    "cut": (PAGE.read_bytes()[:18], None),
    "cut jpeg": (jpeg(1920, 1080, before=segment(0xE1, b"x" * 50_000))[:HEAD_BYTES], None),
    "no width": (b"GIF89a" + bytes((0, 0, 240, 0)), None),
    "too wide": (b"\x89PNG\r\n\x1a\n" + b"\0" * 8 + b"\xff" * 8, None),
    "text": (b"once upon a time", None),
    "nothing": (b"", None),
}


@pytest.mark.parametrize(("head", "size"), HEADS.values(), ids=HEADS)
def test_a_size_is_read_or_unknown(head: bytes, size: tuple[int, int] | None) -> None:
    assert size_of(head) == size


@pytest.mark.parametrize("head", [head for head, _ in HEADS.values()], ids=HEADS)
def test_any_bytes_are_taken_for_what_they_are(head: bytes) -> None:
    for cut in range(min(len(head), 64)):
        size = size_of(head[:cut])
        assert size is None or min(size) > 0
