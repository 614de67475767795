"""The ring of changes."""

import pytest

from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.events import FirstTokenSeen, TurnFinished
from luftpause.services.scheduler.timeline import Timeline
from services.scheduler.running import offer, run, spec
from services.scheduler.watched import told, watched

pytestmark = pytest.mark.interpreted  # its clock inherits from the service


def test_changes_are_told_from_where_one_stopped() -> None:
    async def tell() -> None:
        service, timeline = watched(spec("a"))
        service.admit(offer("t1", run="r"))
        assert timeline.told == 1
        service.after(1)
        service.report(TurnFinished(turn=TurnId("t1")))
        assert told(timeline, 1) == [("r", "idle", 1, "")]
        assert told(timeline, 2) == told(timeline, 99) == []
        assert [lane.name for lane in timeline.followed()] == ["r"]

    run(tell)


def test_it_keeps_no_more_than_allowed_and_nothing_that_is_old() -> None:
    async def tell() -> None:
        service, timeline = watched(spec("a"), timeline=Timeline(changes_max=3, age_s=10))
        for number in range(4):
            service.admit(offer(f"t{number}", run=f"r{number}"))
        assert [change[0] for change in told(timeline)] == ["r1", "r2", "r3"]
        assert timeline.told == 4
        service.after(11)
        service.admit(offer("new", run="new"))
        assert [change[0] for change in told(timeline)] == ["new"]
        assert [change[0] for change in told(timeline, 2)] == ["new"], "what is gone is not told"

    run(tell)


def test_a_first_token_leaves_the_order_and_every_change_is_counted() -> None:
    async def tell() -> None:
        service, timeline = watched(spec("a"))
        for name in ("r", "s"):
            service.admit(offer(f"t-{name}", run=name))
        service.report(FirstTokenSeen(turn=TurnId("t-r")))
        assert [lane.name for lane in timeline.followed()] == ["r", "s"]
        service.report(TurnFinished(turn=TurnId("t-r")))
        assert [lane.name for lane in timeline.followed()] == ["s", "r"]
        assert timeline.told == len(timeline.changes()) == 4

    run(tell)
