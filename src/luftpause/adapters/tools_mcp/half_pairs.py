"""Halves of escaped surrogate pairs in what tool servers say: some cut a text in the middle of an emoji.

The SDK's parser refuses such a message, and its call would wait for an answer that came already.
"""

from collections.abc import AsyncIterator
from typing import Final

from httpx2 import AsyncByteStream

from luftpause.core.dialects.surrogates import mended

MENDED_BYTES_MAX: Final = 256 * 1024
"""Of longer messages none is mended: looking through all that may come would hold up the event loop."""

_MAY_BE_HALF: Final = (b"\\ud", b"\\uD")


def without_halves(message: bytes) -> bytes:
    """Return a JSON message with U+FFFD for each half of a pair."""
    if len(message) > MENDED_BYTES_MAX or not any(mark in message for mark in _MAY_BE_HALF):
        return message
    return mended(message)


class MendedStream(AsyncByteStream):
    """A stream of server-sent events in which no short line holds half of a pair."""

    def __init__(self, stream: AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield whole lines, and what is too long for that as it comes."""
        held = b""
        async for piece in self._stream:
            lines, newline, held = (held + piece).rpartition(b"\n")
            if newline:
                yield without_halves(lines) + newline
            if len(held) > MENDED_BYTES_MAX:
                yield held
                held = b""
        yield without_halves(held)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
