"""A resync in pieces and whole again."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from adapters.link.drawing import values
from luftpause.adapters.link import resync as resync_module
from luftpause.adapters.link.codec import FRAME_BYTES_MAX, FrameError, FrameReader, client_frame
from luftpause.adapters.link.frames import Resync
from luftpause.adapters.link.resync import PART_ENTRIES, ResyncParts, resync_frames
from luftpause.core.model.ids import CallerId, ModelName, PeerId, PrincipalId, ReplicaId, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import KnownRun, PeerResynced, RunPhase

PEER = PeerId("p")


def known(run: str) -> KnownRun:
    return KnownRun(
        run=RunId(run),
        model=ModelName("m"),
        phase=RunPhase.IDLE,
        replica=ReplicaId("x"),
        service_class=ServiceClass.BATCH,
        caller=CallerId("c"),
        principal=PrincipalId("a"),
        age_s=1.0,
    )


def through(report: PeerResynced) -> tuple[PeerResynced, int]:
    parts = ResyncParts(report.peer)
    payloads = list(FrameReader().feed(b"".join(resync_frames(report))))
    for payload in payloads:
        frame = client_frame(payload)
        assert isinstance(frame, Resync)
        whole = parts.take(frame)
        if whole is not None:
            return whole, len(payloads)
    raise AssertionError("the last piece did not say so")


@settings(max_examples=30)
@given(values(PeerResynced))
def test_any_resync_comes_back_as_it_left(report: PeerResynced) -> None:
    assert through(report)[0] == report


def test_an_empty_resync_is_one_frame() -> None:
    assert through(PeerResynced(peer=PEER, turns=(), runs=()))[1] == 1


def test_a_large_resync_leaves_in_pieces_in_order() -> None:
    runs = tuple(known(f"r{n}") for n in range(PART_ENTRIES * 3 + 7))
    report = PeerResynced(peer=PEER, turns=(), runs=runs)
    assert through(report) == (report, 5)


def test_entries_too_long_to_travel_together_travel_apart_and_one_too_long_for_itself_stays() -> None:
    long = [known(f"{n}" + "x" * (FRAME_BYTES_MAX // 3)) for n in range(5)]
    never = known("y" * FRAME_BYTES_MAX)
    report = PeerResynced(peer=PEER, turns=(), runs=(*long[:2], never, *long[2:]))
    assert through(report)[0] == replace(report, runs=tuple(long))


def test_a_resync_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resync_module, "ENTRIES_MAX", 3)
    parts = ResyncParts(PEER)
    parts.take(Resync((), (known("a"), known("b")), last=False))
    with pytest.raises(FrameError, match="more than 3"):
        parts.take(Resync((), (known("a"), known("b")), last=False))


def test_an_entry_that_stays_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    list(resync_frames(PeerResynced(peer=PEER, turns=(), runs=(known("y" * FRAME_BYTES_MAX),))))
    assert [record.message for record in caplog.records] == ["resync_entry_unsendable"]
