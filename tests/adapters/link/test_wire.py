"""One connection's bounds, against a transport that writes down what is asked of it."""

import asyncio
from collections.abc import Callable
from typing import Any

from contracts.relay import bounded
from luftpause.adapters.link.codec import FrameError, FrameReader
from luftpause.adapters.link.wire import Wire


class ScriptedTransport(asyncio.Transport):
    """Keeps every call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.written: list[bytes] = []

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 as the base class has it
        return ClosedSocket()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")


class ClosedSocket:
    """A socket that its peer has reset already."""

    def setsockopt(self, *_: object) -> None:
        raise OSError("Invalid argument")


class Ears:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def wire_opened(self, wire: Wire) -> None:
        self.told.append("opened")

    def payload_received(self, payload: bytes) -> None:
        self.told.append(payload.decode())

    def batch_taken(self) -> None:
        self.told.append("batch")

    def ill_formed(self, error: FrameError) -> None:
        self.told.append("ill-formed")

    def wire_lost(self) -> None:
        self.told.append("lost")


def with_wire(
    test: Callable[[Wire, ScriptedTransport, Ears], None], *, patient: bool = False, unsent_max: int = 100
) -> None:
    async def story() -> None:
        ears, transport = Ears(), ScriptedTransport()
        wire = Wire(ears, FrameReader(), unsent_max=unsent_max, patient=patient)
        wire.connection_made(transport)
        test(wire, transport, ears)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        wire.connection_lost(None)
        assert ears.told[-1] == "lost"
        await wire.lost

    bounded(story)


def test_all_frames_of_one_turn_of_the_loop_leave_in_one_write() -> None:
    transports = []

    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        transports.append(transport)
        for frame in (b"a", b"b", b"c"):
            wire.send(frame)
        assert transport.written == []

    with_wire(story)
    assert transports[0].written == [b"abc"]


def test_what_cannot_wait_leaves_at_once_and_only_once() -> None:
    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        wire.send(b"a")
        wire.send(b"b")
        wire.flush()
        assert transport.written == [b"ab"]
        wire.flush()
        assert transport.written == [b"ab"]

    with_wire(story)


def test_payloads_that_arrive_together_end_with_one_batch() -> None:
    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        wire.data_received(b"\0\0\0\1x\0\0\0\1y\0\0")
        wire.data_received(b"\0\1z")
        assert ears.told == ["opened", "x", "y", "batch", "z", "batch"]

    with_wire(story)


def test_a_stuck_transport_keeps_frames_back_and_a_patient_wire_stops_reading() -> None:
    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        wire.pause_writing()
        wire.send(b"a")
        wire.flush()
        assert transport.written == []
        wire.resume_writing()
        assert transport.written == [b"a"]
        assert transport.calls == ["pause", "resume"]

    with_wire(story, patient=True)


def test_an_impatient_wire_reads_on_so_that_two_stuck_ends_cannot_wait_for_each_other() -> None:
    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        wire.pause_writing()
        wire.resume_writing()
        assert transport.calls == []

    with_wire(story)


def test_more_than_may_wait_cuts_the_connection() -> None:
    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        wire.pause_writing()
        wire.send(b"x" * 100)
        assert not wire.overflowed
        wire.send(b"y")
        assert wire.overflowed
        wire.send(b"z")
        assert (transport.calls, transport.written) == (["abort"], [])

    with_wire(story)


def test_closing_sends_what_waits_even_when_stuck_and_hears_no_more() -> None:
    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        wire.pause_writing()
        wire.send(b"last")
        wire.close()
        wire.close()
        wire.send(b"too late")
        wire.data_received(b"\0\0\0\1x")
        wire.data_received(b"\xff\xff\xff\xff")
        assert (transport.written, transport.calls) == ([b"last"], ["close"])
        assert ears.told == ["opened"]

    with_wire(story)


def test_what_cannot_be_cut_into_payloads_is_told_once() -> None:
    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        wire.data_received(b"\0\0\0\1x\xff\xff\xff\xff")
        assert ears.told == ["opened", "x", "ill-formed"]

    with_wire(story)
