"""Frames between a foreman and a worker, cut anywhere and broken anyhow."""

import asyncio

import msgspec
import pytest

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.adapters.crew.frames import FRAME_BYTES_MAX, AnyFrame, Ask, Begin, ChannelError, Opened, Told, hear
from luftpause.telemetry.exposition import Family, Sample

FRAMES: list[AnyFrame] = [
    Begin(b"\x00order"),
    Opened(),
    Ask(1),
    Told(2, (Family("n", "said", "counter", (Sample("n_total", (("a", "b"),), 1.0),)),)),
]


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


async def heard(data: bytes) -> list[AnyFrame]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    frames = []
    while (frame := await hear(reader)) is not None:
        frames.append(frame)
    return frames


def test_frames_arrive_as_they_were_said_until_the_other_end_is_gone() -> None:
    data = b"".join(framed(msgspec.msgpack.encode(frame)) for frame in FRAMES)
    assert run_bounded(heard(data)) == FRAMES
    assert run_bounded(heard(data[:-1])) == FRAMES[:-1]


@pytest.mark.parametrize(
    "data",
    [
        framed(b"\xc1"),
        framed(msgspec.msgpack.encode(["nonsense"])),
        framed(msgspec.msgpack.encode(["tell"])),
        (FRAME_BYTES_MAX + 1).to_bytes(4, "big"),
    ],
    ids=["no msgpack", "no frame of ours", "a frame that lacks a field", "too long"],
)
def test_anything_else_is_an_error(data: bytes) -> None:
    with pytest.raises(ChannelError):
        run_bounded(heard(data))
