import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from httpx2 import AsyncByteStream

from luftpause.adapters.tools_mcp.half_pairs import MENDED_BYTES_MAX, MendedStream, without_halves

HALF = rb'{"said": "\ud83d \uD83D\uDE00 \\ud83d"}'
WHOLE = rb'{"said": "\ufffd \uD83D\uDE00 \\ud83d"}'


class Pieces(AsyncByteStream):
    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    async def aclose(self) -> None:
        self.closed = True


async def read(stream: MendedStream) -> bytes:
    return b"".join([piece async for piece in stream])


def test_only_halves_change() -> None:
    assert without_halves(HALF) == WHOLE
    assert without_halves(b'{"said": "nothing"}') == b'{"said": "nothing"}'


def test_a_message_that_is_long_stays_as_it_is() -> None:
    long = HALF + b" " * MENDED_BYTES_MAX
    assert without_halves(long) == long


@pytest.mark.parametrize("size", range(1, len(HALF) + 8))
def test_a_stream_is_mended_however_it_is_cut(size: int) -> None:
    said = b"data: " + HALF + b"\n\ndata: " + HALF
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    assert asyncio.run(read(MendedStream(Pieces(pieces)))) == b"data: " + WHOLE + b"\n\ndata: " + WHOLE


def test_a_line_without_an_end_is_not_kept() -> None:
    async def use() -> bytes:
        stream = MendedStream(Pieces([b"x" * (MENDED_BYTES_MAX + 1), b"y"]))
        return await anext(aiter(stream))

    assert len(asyncio.run(use())) == MENDED_BYTES_MAX + 1


def test_closing_closes_what_is_read() -> None:
    pieces = Pieces([])
    asyncio.run(MendedStream(pieces).aclose())
    assert pieces.closed
