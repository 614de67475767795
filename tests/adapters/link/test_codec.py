"""Frames to bytes and back, whatever the bytes."""

import struct
from dataclasses import is_dataclass, replace
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.link.drawing import values
from luftpause.adapters.link.codec import (
    FRAME_BYTES_MAX,
    FrameError,
    FrameReader,
    client_frame,
    report_frame,
    report_in,
    server_frame,
    to_bytes,
)
from luftpause.adapters.link.frames import (
    LINK_PROTOCOL,
    Accepted,
    Admit,
    ClientFrame,
    Fault,
    Hello,
    ListModels,
    Placed,
    Recalled,
    Refused,
    Report,
    Resync,
    ServerFrame,
    Welcome,
)
from luftpause.core.model.ids import (
    CallerId,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolCallId,
    TurnId,
)
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.replicas import Endpoint, Placement, ReplicaKind
from luftpause.core.model.turns import IdentityKeys, ServiceClass, TurnOffer, Usage
from luftpause.core.scheduling.events import (
    FirstTokenSeen,
    KnownRun,
    RunPhase,
    TurnFinished,
    TurnReport,
    TurnsRenewed,
)

OFFER = TurnOffer(
    turn=TurnId("p.1"),
    peer=PeerId("p"),
    model=ModelName("m"),
    kind=ReplicaKind.GENERATIVE,
    service_class=ServiceClass.BATCH,
    caller=CallerId("c"),
    principal=PrincipalId("a"),
    keys=IdentityKeys(tool_calls=(ToolCallId("x"),)),
)


def unframed(data: bytes) -> bytes:
    (payload,) = FrameReader().feed(data)
    return payload


@pytest.mark.parametrize("kind", get_args(TurnReport), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_report_comes_back_as_it_left(kind: type[TurnReport], data: st.DataObject) -> None:
    report = data.draw(values(kind))
    frame = client_frame(unframed(to_bytes(report_frame(7, report))))
    assert isinstance(frame, Report)
    assert frame.seq == 7
    assert report_in(frame) == report


@pytest.mark.parametrize("kind", [k for k in get_args(ClientFrame) if k is not Report], ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_client_frame_comes_back_as_it_left(kind: type[ClientFrame], data: st.DataObject) -> None:
    frame = data.draw(values(kind))
    assert client_frame(unframed(to_bytes(frame))) == frame


@pytest.mark.parametrize("kind", get_args(ServerFrame), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_server_frame_comes_back_as_it_left(kind: type[ServerFrame], data: st.DataObject) -> None:
    frame = data.draw(values(kind))
    assert server_frame(unframed(to_bytes(frame))) == frame


def test_all_that_a_desk_hears_is_a_plain_frozen_value() -> None:
    assert all(is_dataclass(kind) for kind in get_args(TurnReport))


GOLDEN: dict[str, tuple[ClientFrame | ServerFrame, str]] = {
    "hello": (Hello(LINK_PROTOCOL, PeerId("p"), "t"), "94a568656c6c6f09a170a174"),
    "welcome": (Welcome(LINK_PROTOCOL, "i"), "93a777656c636f6d6509a169"),
    "accepted": (Accepted(TurnId("p.1"), RunId("r")), "94a86163636570746564a3702e31a172c0"),
    "fault": (Fault("bad_token", "no"), "93a56661756c74a96261645f746f6b656ea26e6f"),
    "report": (
        report_frame(1, FirstTokenSeen(turn=TurnId("p.1"))),
        "94a67265706f727401ae4669727374546f6b656e5365656e82a47475726ea3702e31a874726163655f6964a0",
    ),
    "placed": (
        Placed(TurnId("t"), Placement(replica=ReplicaId("r"), endpoint=Endpoint(url="u"), why="w")),
        "93a6706c61636564a1748da77265706c696361a172a8656e64706f696e7482a375726ca175ab6170695f6b65795f656e76a0"
        "a3776879a177a6656e67696e65a46175746fa86469616c65637473c0"
        "a46b696e64aa67656e65726174697665a56d6f64656ca0a46c69666500a4736c6f74c0a7726573746f7265a0"
        "a87072696f72697479c0ad6f776e735f7072696f72697479c2a6636861726765c0",
    ),
    "recalled": (Recalled(TurnId("p.1")), "92a8726563616c6c6564a3702e31"),
    "refused": (
        Refused(TurnId("t"), Refusal(reason=RefusalReason.EXPIRED, message="m")),
        "93a772656675736564a17483a6726561736f6ea765787069726564a76d657373616765a16dad72657472795f61667465725f73c0",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_wire_stays_as_it_is_while_the_protocol_number_does(name: str) -> None:
    frame, expected = GOLDEN[name]
    assert unframed(to_bytes(frame)).hex() == expected


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=20), st.lists(st.integers(1, 97), min_size=1))
def test_payloads_are_the_same_however_the_stream_was_split(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(struct.pack(">I", len(payload)) + payload for payload in payloads)
    reader = FrameReader()
    seen: list[bytes] = []
    position = 0
    turn = 0
    while position < len(stream):
        step = cuts[turn % len(cuts)]
        seen += reader.feed(stream[position : position + step])
        position += step
        turn += 1
    assert seen == payloads


@given(st.binary(max_size=2000))
def test_no_bytes_raise_anything_but_a_frame_error(data: bytes) -> None:
    for decode in (client_frame, server_frame):
        try:
            decode(data)
        except FrameError:
            continue


@given(st.data())
def test_a_damaged_frame_raises_nothing_but_a_frame_error(data: st.DataObject) -> None:
    payload = bytearray(unframed(to_bytes(Admit(OFFER))))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        client_frame(bytes(payload))
    except FrameError:
        return


@pytest.mark.parametrize(
    "payload",
    [
        b"\x91" * 1_000_000,
        b"\x94\xa6report\x01\xa1k" + b"\x91" * 900_000,
        b"\x92\xa5admit\x81\xa4turx" + b"\x91" * 900_000,
        msgspec.msgpack.encode(["nonsense", 1]),
        msgspec.msgpack.encode(["admit"]),
        msgspec.msgpack.encode(["list_models", "seven"]),
        msgspec.msgpack.encode(["welcome", 1, "from a client?"]),
        b"\xc1",
        b"\x00\x00",
    ],
    ids=[
        "deep",
        "deep report",
        "deep unknown field",
        "unknown tag",
        "short",
        "type",
        "server frame",
        "bad code",
        "rest",
    ],
)
def test_hostile_payloads_are_frame_errors(payload: bytes) -> None:
    with pytest.raises(FrameError):
        client_frame(payload)


@pytest.mark.parametrize("age_s", [float("nan"), float("inf"), -1.0])
def test_an_age_that_is_no_age_is_a_frame_error(age_s: float) -> None:
    run = KnownRun(
        run=RunId("r"),
        model=ModelName("m"),
        phase=RunPhase.IDLE,
        replica=ReplicaId("x"),
        service_class=ServiceClass.BATCH,
        caller=CallerId("c"),
        principal=PrincipalId("a"),
        age_s=age_s,
    )
    for frame in (Resync((), (run,), last=True), Admit(replace(OFFER, age_s=age_s))):
        with pytest.raises(FrameError, match="age"):
            client_frame(unframed(to_bytes(frame)))


def test_a_report_of_an_unknown_kind_or_with_a_foreign_body_is_a_frame_error() -> None:
    with pytest.raises(FrameError, match="unknown report"):
        report_in(Report(1, "TurnLost", msgspec.Raw(b"\x80")))
    with pytest.raises(FrameError, match="not a frame"):
        report_in(Report(1, "FirstTokenSeen", msgspec.Raw(b"\x80")))


def test_an_announced_length_past_the_limit_ends_the_stream_after_what_came_before() -> None:
    good = to_bytes(ListModels(1))
    reader = FrameReader()
    payloads = reader.feed(good + struct.pack(">I", FRAME_BYTES_MAX + 1))
    assert client_frame(next(payloads)) == ListModels(1)
    with pytest.raises(FrameError, match="announced"):
        next(payloads)
    with pytest.raises(FrameError, match="announced"):
        list(FrameReader().feed(b"\0\0\0\0"))


def test_what_cannot_travel_is_a_frame_error_before_it_leaves() -> None:
    with pytest.raises(FrameError, match="cannot be encoded"):
        to_bytes(Fault("x", "\ud800"))
    huge = Usage(prompt_tokens=10**30, completion_tokens=1)
    with pytest.raises(FrameError, match="cannot be encoded"):
        report_frame(1, TurnFinished(turn=TurnId("t"), usage=huge))
    with pytest.raises(FrameError, match="at most 1048576 fit"):
        to_bytes(report_frame(1, TurnsRenewed(turns=(TurnId("x" * FRAME_BYTES_MAX),))))


def test_a_frame_of_exactly_the_limit_passes() -> None:
    room = FRAME_BYTES_MAX - len(to_bytes(Fault("x" * 70_000, ""))) + 4 - 4
    frame = Fault("x" * 70_000, "y" * room)
    assert len(to_bytes(frame)) == FRAME_BYTES_MAX + 4
    assert server_frame(unframed(to_bytes(frame))) == frame


def test_an_accepted_turn_of_an_older_scheduler_has_no_parent() -> None:
    assert server_frame(bytes.fromhex("93a86163636570746564a3702e31a172")) == Accepted(TurnId("p.1"), RunId("r"))
