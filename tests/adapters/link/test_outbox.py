"""Reports until they are confirmed."""

from luftpause.adapters.link import outbox as outbox_module
from luftpause.adapters.link.codec import FRAME_BYTES_MAX, FrameReader, client_frame, report_in
from luftpause.adapters.link.frames import Report
from luftpause.adapters.link.outbox import RENEWED_MAX, REPORTS_MAX, Outbox
from luftpause.core.model.ids import Instant, ToolCallId, TurnId
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import FirstTokenSeen, TurnFailed, TurnFinished, TurnsRenewed

NOW = Instant(1.0)
T = TurnId("t")


def read(data: bytes) -> list[Report]:
    frames = [client_frame(payload) for payload in FrameReader().feed(data)]
    return [frame for frame in frames if isinstance(frame, Report)]


def test_reports_are_numbered_and_kept_until_confirmed() -> None:
    outbox = Outbox()
    sent = [outbox.put(FirstTokenSeen(turn=TurnId(str(n))), NOW, keep=True) for n in range(5)]
    assert [read(frame)[0].seq for frame in sent] == [1, 2, 3, 4, 5]
    assert [report for report, _ in outbox.confirmed(3)] == [FirstTokenSeen(turn=TurnId(str(n))) for n in range(3)]
    assert list(outbox.unconfirmed()) == sent[3:]
    assert list(outbox.confirmed(2)) == []


def test_a_report_that_matters_only_now_is_numbered_and_not_kept() -> None:
    outbox = Outbox()
    outbox.put(FirstTokenSeen(turn=T), NOW, keep=False)
    kept = outbox.put(FirstTokenSeen(turn=T), NOW, keep=True)
    assert read(kept)[0].seq == 2
    assert list(outbox.unconfirmed()) == [kept]


def test_a_sign_of_life_of_thousands_leaves_in_pieces() -> None:
    turns = tuple(TurnId("x" * 100 + str(n)) for n in range(RENEWED_MAX * 2 + 1))
    frames = read(Outbox().put_renewed(TurnsRenewed(turns=turns)))
    reports = [report_in(frame) for frame in frames]
    assert [frame.seq for frame in frames] == [1, 2, 3]
    assert tuple(turn for report in reports if isinstance(report, TurnsRenewed) for turn in report.turns) == turns
    assert Outbox().put_renewed(TurnsRenewed(turns=())) == b""


def test_a_report_that_cannot_travel_still_ends_its_turn() -> None:
    outbox = Outbox()
    failed = TurnFailed(turn=T, cause="its report did not fit the link")
    too_long = TurnFinished(turn=T, tool_calls=(ToolCallId("x" * FRAME_BYTES_MAX),))
    too_large = TurnFinished(turn=T, usage=Usage(prompt_tokens=2**80, completion_tokens=0))
    for report in (too_long, too_large, TurnFailed(turn=T, cause="\udcff")):
        (frame,) = read(outbox.put(report, NOW, keep=True))
        assert report_in(frame) == failed
    assert [report for report, _ in outbox.confirmed(3)] == [failed] * 3


def test_a_full_outbox_lets_the_oldest_go() -> None:
    outbox = Outbox()
    for _ in range(REPORTS_MAX + 3):
        outbox.put(FirstTokenSeen(turn=T), NOW, keep=True)
    assert len(list(outbox.confirmed(0))) == 3
    assert len(list(outbox.unconfirmed())) == outbox_module.REPORTS_MAX
