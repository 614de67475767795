"""A closed loop: as many runs at a time as there are workers; a run that ends is followed by the next at once."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator

from luftpause.testkit.load.runs import Board, RunFailedError, RunNotes

PAUSE_AFTER_FAILURE_S = 0.5
"""A worker rests after a failed run, so that a dead door is not hammered."""

OneRun = Callable[[RunNotes], Awaitable[None]]
"""Carries out one run and notes what it sees. Raises RunFailedError."""


async def closed_loop(
    one_run: OneRun, board: Board, *, workers: int, runs: int | None, duration_s: float | None
) -> None:
    """Run until `runs` have ended or `duration_s` is over, whichever comes first.

    Runs under way when the time is over are dropped and stay on the board as under way. At least one of the two limits
    is needed.
    """
    assert runs is not None or duration_s is not None
    numbers = iter(range(1, runs + 1)) if runs is not None else itertools.count(1)
    loop = asyncio.get_running_loop()
    board.started_at = loop.time()
    limit = asyncio.timeout(duration_s)
    try:
        async with limit, asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(_work(one_run, board, numbers))
    except TimeoutError:
        assert limit.expired(), "one from inside a run comes wrapped in a group"
    finally:
        board.ended_at = loop.time()


async def _work(one_run: OneRun, board: Board, numbers: Iterator[int]) -> None:
    loop = asyncio.get_running_loop()
    for number in numbers:
        notes = RunNotes(number=number, started_at=loop.time())
        board.under_way[number] = notes
        try:
            await one_run(notes)
        except RunFailedError as failure:
            notes.failure = failure
        notes.run_s = loop.time() - notes.started_at
        del board.under_way[number]
        board.ended.append(notes)
        if notes.failure is not None:
            await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
