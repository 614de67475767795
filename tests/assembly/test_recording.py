"""The scheduler with what is written down of its decisions."""

from functools import partial
from pathlib import Path

import pytest

from luftpause.adapters.event_log.replaying import replay
from luftpause.adapters.event_log.writer import EventLog
from luftpause.assembly.recording import Recording, recorded_scheduler
from luftpause.assembly.start_failed import StartFailedError
from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.events import TurnAbandoned
from luftpause.services.scheduler.settings import SchedulerSettings
from services.scheduler.running import crowd, offer, probed, run, spec


@pytest.mark.parametrize("validates", [False, True])
def test_what_the_scheduler_decides_can_be_replayed(tmp_path: Path, *, validates: bool) -> None:
    file = tmp_path / "log"

    async def story() -> None:
        async with recorded_scheduler(SchedulerSettings(), Recording(event_log=file, validates=validates)) as desk:
            desk.add_replica(spec("a"))
            desk.probed(probed("a"))
            crowd(desk)
            desk.admit(offer("t1"))
            desk.report(TurnAbandoned(turn=TurnId("t1")))

    run(story)
    with file.open("rb") as lines:
        seen = replay(lines)
    assert (seen.events, seen.placed, dict(seen.holds)) == (6, 1, {"WaitingForRoom": 1})


def test_nothing_is_written_unless_asked_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with recorded_scheduler(SchedulerSettings(), Recording()) as desk:
            desk.add_replica(spec("a"))
            assert b"event_log" not in desk.metrics.render()

    run(story)
    assert not list(tmp_path.iterdir())


def test_a_log_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    async def story() -> None:
        async with recorded_scheduler(SchedulerSettings(), Recording(event_log=tmp_path / "no" / "log")):
            raise AssertionError("it must not start")

    with pytest.raises(StartFailedError, match=r"--event-log: cannot write .*log: No such file"):
        run(story)


def test_events_that_the_log_did_not_get_are_counted_among_the_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luftpause.assembly.recording.EventLog", partial(EventLog, waiting_max=0))

    async def story() -> None:
        async with recorded_scheduler(SchedulerSettings(), Recording(event_log=tmp_path / "log")) as desk:
            assert b"\nluftpause_event_log_dropped_events_total 0.0\n" in desk.metrics.render()
            desk.add_replica(spec("a"))
            desk.probed(probed("a"))
            assert b"\nluftpause_event_log_dropped_events_total 2.0\n" in desk.metrics.render()

    run(story)
