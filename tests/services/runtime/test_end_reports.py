import asyncio
import logging

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId, RunId
from luftpause.core.runs.actions import ReportEnd
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime import end_reports
from luftpause.services.runtime.end_reports import AT_ONCE_MAX, EndReports
from services.runtime.runtime_fakes import in_time
from testkit.virtual_time import run_virtual


class SlowDoor:
    """Takes reports and answers once it is told to."""

    def __init__(self) -> None:
        self.answers = asyncio.Semaphore(0)
        self.asked: list[RunId] = []
        self.told: list[RunId] = []

    async def take(self, request: TurnRequest) -> TurnReply:
        raise TurnFailedError("no turns here")

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        assert principal == ANONYMOUS_PRINCIPAL
        self.asked.append(run)
        await self.answers.acquire()
        self.told.append(run)


def ends(number: int) -> list[ReportEnd]:
    return [ReportEnd(run=RunId(f"run_{each}"), principal=ANONYMOUS_PRINCIPAL) for each in range(number)]


def test_a_thousand_ends_are_reported_in_order_and_a_few_at_a_time() -> None:
    async def live() -> None:
        door = SlowDoor()
        reports = EndReports(door)
        all_of_them = ends(1000)
        for ended in all_of_them:
            reports.add(ended)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(door.asked) == AT_ONCE_MAX
        for _ in all_of_them:
            door.answers.release()
        await reports.close()
        assert door.told == [ended.run for ended in all_of_them]

    in_time(live())


def test_closing_waits_a_moment_for_a_door_that_does_not_answer() -> None:
    async def live() -> None:
        door = SlowDoor()
        reports = EndReports(door)
        for ended in ends(2):
            reports.add(ended)
        began = asyncio.get_running_loop().time()
        await reports.close()
        assert asyncio.get_running_loop().time() - began == pytest.approx(end_reports.GRACE_S)
        assert (len(door.asked), door.told) == (2, [])

    run_virtual(live())


def test_of_too_many_that_wait_the_oldest_is_dropped_and_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(end_reports, "WAITING_MAX", 3)
    caplog.set_level(logging.WARNING)

    async def live() -> None:
        door = SlowDoor()
        reports = EndReports(door)
        for ended in ends(5):
            reports.add(ended)
            door.answers.release()
        await reports.close()
        assert door.told == ["run_2", "run_3", "run_4"]

    in_time(live())
    assert [record.__dict__["run"] for record in caplog.records] == ["run_0", "run_1"]
