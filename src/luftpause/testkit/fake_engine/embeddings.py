"""`/v1/embeddings` of the fake engine: made-up but repeatable vectors of length 1. Pure.

The same text, seed and number of dimensions give the same vector; texts that are alike are no closer than others.
"""

import base64
import hashlib
import math
import struct
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

DIMENSIONS = 64
_DIGEST_BYTES = 64
_NUMBERS_PER_DIGEST = _DIGEST_BYTES // 2


class Embeddings(msgspec.Struct, frozen=True):
    """The body of an embeddings request: texts only, no token ids."""

    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Meta(ge=1, le=4096)] | None = None

    @property
    def texts(self) -> Sequence[str]:
        """The texts to embed, in order."""
        return [self.input] if isinstance(self.input, str) else self.input


def embedding(request: Embeddings, index: int, seed: int) -> dict[str, object]:
    """Return one entry of `data`."""
    vector = _vector(request.texts[index], request.dimensions or DIMENSIONS, seed)
    shown: object = vector
    if request.encoding_format == "base64":
        shown = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    return {"object": "embedding", "index": index, "embedding": shown}


def _vector(text: str, dimensions: int, seed: int) -> list[float]:
    numbers: list[int] = []
    for block in range(-(-dimensions // _NUMBERS_PER_DIGEST)):
        named = f"{seed}:{block}:{text}".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(named, digest_size=_DIGEST_BYTES).digest()
        numbers += struct.unpack(f"<{_NUMBERS_PER_DIGEST}h", digest)
    del numbers[dimensions:]
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]
