"""The timeline as it is told."""

import pytest

from luftpause.core.model.ids import Instant, TurnId
from luftpause.core.scheduling.events import FirstTokenSeen, TurnFinished
from luftpause.services.scheduler import timeline_json
from luftpause.services.scheduler.timeline_json import change_row, from_the_start, lane_row, lanes_of, since_told
from services.scheduler.running import offer, run, spec
from services.scheduler.watched import watched

pytestmark = pytest.mark.interpreted  # its clock inherits from the service


def test_who_begins_to_look_is_told_the_last_while_and_where_the_others_stand() -> None:
    async def tell() -> None:
        service, timeline = watched(spec("a"))
        service.admit(offer("old", run="old"))
        service.admit(offer("ended", run="ended"))
        service.after(60)
        service.admit(offer("new", run="new", parent="old"))
        changes = from_the_start(timeline, service.now(), 30)
        assert [change_row(change, Instant(100.0)) for change in changes] == [
            [1, "prefill", 30_000, "a"],
            [2, "prefill", 30_000, "a"],
            [3, "prefill", 60_000, "a"],
        ]
        assert [lane_row(lane) for lane in lanes_of(changes)] == [
            [1, "old", "run", "interactive", "anonymous", "m", None],
            [2, "ended", "run", "interactive", "anonymous", "m", None],
            [3, "new", "run", "interactive", "anonymous", "m", "old"],
        ]

    run(tell)


def test_of_too_many_changes_the_last_one_of_each_lane_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_json, "TOLD_AT_ONCE_MAX", 3)

    async def tell() -> None:
        service, timeline = watched(spec("a"))
        for turn in ("t1", "t2"):
            service.admit(offer(turn, run=turn))
            service.report(FirstTokenSeen(turn=TurnId(turn)))
        assert [change.phase.value for change in since_told(timeline, 1)] == ["decode", "prefill", "decode"]
        service.report(TurnFinished(turn=TurnId("t1")))
        assert [(each.lane.name, each.phase.value) for each in since_told(timeline, 0)] == [
            ("t1", "idle"),
            ("t2", "decode"),
        ]

    run(tell)


def test_nothing_is_told_of_nothing() -> None:
    async def tell() -> None:
        service, timeline = watched()
        assert list(from_the_start(timeline, service.now(), 30)) == list(since_told(timeline, 0)) == []

    run(tell)
