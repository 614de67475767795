"""A launcher in another process, as the scheduler holds it."""

import asyncio

from luftpause.adapters.link.frames import AskLog, LogLines, Ordered
from luftpause.adapters.link.remote_seat import RemoteSeat
from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.scheduling.residency.events import LauncherJoined
from luftpause.ports.processes import LogSlice

M = ModelName("m")
JOINED = LauncherJoined(launcher=LauncherId("box"), devices=(), catalogue=())


def test_answers_find_who_asked_and_late_or_foreign_ones_nobody() -> None:
    async def story() -> tuple[LogSlice, LogSlice]:
        said: list[Ordered | AskLog] = []
        seat = RemoteSeat(JOINED, said.append)
        first, second = (asyncio.create_task(seat.log(M, after)) for after in (1, 2))
        await asyncio.sleep(0)
        asked = [frame for frame in said if isinstance(frame, AskLog)]
        assert [frame.after for frame in asked] == [1, 2]
        seat.answered(LogLines(99, ("foreign",), 0))
        seat.answered(LogLines(asked[1].request, ("two",), 3))
        seat.answered(LogLines(asked[0].request, ("one",), 2))
        answers = await first, await second
        seat.answered(LogLines(asked[0].request, ("late",), 2))
        return answers

    assert asyncio.run(story()) == (LogSlice(lines=("one",), next=2), LogSlice(lines=("two",), next=3))


def test_too_many_questions_at_once_are_answered_with_nothing() -> None:
    async def story() -> LogSlice:
        seat = RemoteSeat(JOINED, lambda _: None)
        open_ones = [asyncio.create_task(seat.log(M, 0)) for _ in range(64)]
        await asyncio.sleep(0)
        answer = await seat.log(M, 7)
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)
        return answer

    assert asyncio.run(story()) == LogSlice(lines=(), next=7)
