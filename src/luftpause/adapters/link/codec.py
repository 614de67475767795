"""Frames to bytes and back, sans-IO: a 4-byte big-endian length, then the frame as msgpack.

Whatever bytes arrive, the only errors raised are this module's own, and no more than one frame is ever kept.
It does not know which frame may follow which.
"""

import math
import struct
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar, get_args

import msgspec

from luftpause.adapters.link.frames import Admit, ClientFrame, Ordered, Report, Resync, ServerFrame, Told
from luftpause.core.scheduling.events import TurnReport
from luftpause.ports.launcher import LauncherReport, ModelOrder

FRAME_BYTES_MAX: Final = 1024 * 1024
"""A turn that echoes some 20,000 tool calls still fits; nothing honest is larger."""

_T = TypeVar("_T")
_LENGTH: Final = struct.Struct(">I")
_ENCODER: Final = msgspec.msgpack.Encoder()
_CLIENT_FRAMES: Final = msgspec.msgpack.Decoder(ClientFrame)
_SERVER_FRAMES: Final = msgspec.msgpack.Decoder(ServerFrame)
_REPORTS: Final = {kind.__name__: msgspec.msgpack.Decoder(kind) for kind in get_args(TurnReport)}

_TOLD: Final = {kind.__name__: msgspec.msgpack.Decoder(kind) for kind in get_args(LauncherReport)}
_ORDERS: Final = {kind.__name__: msgspec.msgpack.Decoder(kind) for kind in get_args(ModelOrder)}


class FrameError(Exception):
    """Bytes that are no frame, or a frame that cannot become bytes."""


def to_bytes(frame: ClientFrame | ServerFrame, *, limit: int = FRAME_BYTES_MAX) -> bytes:
    """Return the frame ready to be written.

    Raises:
        FrameError: longer than `limit` bytes, or it holds text that is no valid Unicode or a number past 64 bits.
    """
    try:
        payload = _ENCODER.encode(frame)
    except (UnicodeEncodeError, OverflowError) as error:
        raise FrameError(f"{type(frame).__name__} cannot be encoded: {error}") from error
    if len(payload) > limit:
        raise FrameError(f"{type(frame).__name__} has {len(payload)} bytes, at most {limit} fit")
    return _LENGTH.pack(len(payload)) + payload


def client_frame(payload: bytes) -> ClientFrame:
    """Return what a client said.

    Raises:
        FrameError: no frame that clients send.
    """
    frame = _decode(_CLIENT_FRAMES, payload)
    if not all(0.0 <= age_s < math.inf for age_s in _ages(frame)):
        raise FrameError("an age is a number of seconds, 0 or more")
    return frame


def server_frame(payload: bytes) -> ServerFrame:
    """Return what a server said.

    Raises:
        FrameError: no frame that servers send.
    """
    return _decode(_SERVER_FRAMES, payload)


def report_frame(seq: int, report: TurnReport) -> Report:
    """Return the frame that carries a report.

    Raises:
        FrameError: it holds text that is no valid Unicode or a number past 64 bits.
    """
    return Report(seq, type(report).__name__, _body(report))


def report_in(frame: Report) -> TurnReport:
    """Return the report that a frame carries.

    Raises:
        FrameError: its kind is unknown or its body is not of that kind.
    """
    report: TurnReport = _decode(_kind(_REPORTS, frame), bytes(frame.body))
    return report


def told_frame(report: LauncherReport) -> Told:
    """Return the frame that carries a launcher's report.

    Raises:
        FrameError: it holds text that is no valid Unicode or a number past 64 bits.
    """
    return Told(type(report).__name__, _body(report))


def told_in(frame: Told) -> LauncherReport:
    """Return the launcher's report that a frame carries.

    Raises:
        FrameError: its kind is unknown or its body is not of that kind.
    """
    report: LauncherReport = _decode(_kind(_TOLD, frame), bytes(frame.body))
    return report


def order_frame(order: ModelOrder) -> Ordered:
    """Return the frame that carries an order.

    Raises:
        FrameError: it holds text that is no valid Unicode or a number past 64 bits.
    """
    return Ordered(type(order).__name__, _body(order))


def order_in(frame: Ordered) -> ModelOrder:
    """Return the order that a frame carries.

    Raises:
        FrameError: its kind is unknown or its body is not of that kind.
    """
    order: ModelOrder = _decode(_kind(_ORDERS, frame), bytes(frame.body))
    return order


class FrameReader:
    """Cuts a byte stream into payloads, however it was split on its way.

    `limit` is the longest payload accepted, bytes; it may be raised between two payloads.
    """

    def __init__(self, limit: int = FRAME_BYTES_MAX) -> None:
        self.limit = limit
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take in bytes and yield each payload that is now complete. Exhaust it before feeding again.

        Raises:
            FrameError: a payload announced as empty or longer than the limit. The stream is lost from there on.
        """
        self._rest += data
        start = 0
        try:
            while len(self._rest) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._rest, start)
                if not 0 < length <= self.limit:
                    raise FrameError(f"a frame of {length} bytes was announced, 1 to {self.limit} are accepted")
                end = start + _LENGTH.size + length
                if len(self._rest) < end:
                    break
                payload = bytes(memoryview(self._rest)[start + _LENGTH.size : end])
                start = end
                yield payload
        finally:
            del self._rest[:start]


def _body(said: object) -> msgspec.Raw:
    try:
        return msgspec.Raw(_ENCODER.encode(said))
    except (UnicodeEncodeError, OverflowError) as error:
        raise FrameError(f"{type(said).__name__} cannot be encoded: {error}") from error


def _kind(
    decoders: Mapping[str, msgspec.msgpack.Decoder[_T]], frame: Report | Told | Ordered
) -> msgspec.msgpack.Decoder[_T]:
    decoder = decoders.get(frame.kind)
    if decoder is None:
        what = "order" if isinstance(frame, Ordered) else "report"
        raise FrameError(f"unknown {what} {frame.kind!r:.80}")
    return decoder


def _ages(frame: ClientFrame) -> Iterator[float]:
    if isinstance(frame, Admit):
        yield frame.offer.age_s
    elif isinstance(frame, Resync):
        yield from (run.age_s for run in frame.runs)


def _decode(decoder: msgspec.msgpack.Decoder[_T], payload: bytes) -> _T:
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FrameError(f"not a frame: {error}") from error
