"""What a foreman and a worker say to each other, over a pair of connected sockets that nobody else holds.

A frame is a 4-byte big-endian length and a msgpack array. Both ends are the same version of the same program, so there
is no handshake; the worker's first frame comes after the foreman's.
"""

import asyncio
from typing import Final, TypeAlias

import msgspec

from luftpause.telemetry.exposition import Family

FRAME_BYTES_MAX: Final = 64 * 1024 * 1024
"""An order holds a whole configuration, which has no limit of its own."""

_LENGTH_BYTES: Final = 4


class ChannelError(Exception):
    """What arrived is no frame: the other end is not what it should be."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """What all frames share."""


class Begin(Frame, frozen=True, tag="begin"):
    """The foreman's first: what the worker is to do. Only its assembly reads the order."""

    order: bytes


class Tell(Frame, frozen=True, tag="tell"):
    """The foreman asks what the worker counted. Answered by Told."""

    request: int


class Together(Frame, frozen=True, tag="together"):
    """Answer to Ask."""

    request: int
    counts: tuple[Family, ...]


class Opened(Frame, frozen=True, tag="opened"):
    """The worker's first: its door is open."""


class Told(Frame, frozen=True, tag="told"):
    """Answer to Tell."""

    request: int
    counts: tuple[Family, ...]


class Ask(Frame, frozen=True, tag="ask"):
    """The worker asks what all counted. Answered by Together."""

    request: int


AnyFrame: TypeAlias = Begin | Tell | Together | Opened | Told | Ask

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(AnyFrame)


def say(writer: asyncio.StreamWriter, frame: AnyFrame) -> None:
    """Send a frame without waiting. To an end that is gone it goes nowhere."""
    payload = _ENCODER.encode(frame)
    if not writer.is_closing():
        writer.write(len(payload).to_bytes(_LENGTH_BYTES, "big") + payload)


async def hear(reader: asyncio.StreamReader) -> AnyFrame | None:
    """Return the other end's next frame, None once it is gone.

    Raises:
        ChannelError: something else arrived.
    """
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
        if length > FRAME_BYTES_MAX:
            raise ChannelError(f"a frame of {length} bytes, at most {FRAME_BYTES_MAX} fit")
        return _DECODER.decode(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except msgspec.MsgspecError as error:
        raise ChannelError(str(error)) from error
