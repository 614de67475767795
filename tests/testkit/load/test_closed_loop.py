"""The closed loop."""

import asyncio

import pytest

from luftpause.testkit.load import closed_loop as module
from luftpause.testkit.load.closed_loop import closed_loop
from luftpause.testkit.load.runs import Board, RunFailedError, RunNotes
from testkit.running import run
from testkit.virtual_time import run_virtual


def test_every_worker_has_one_run_at_a_time_and_the_next_follows_at_once() -> None:
    board, together = Board(), []

    async def one_run(_: RunNotes) -> None:
        together.append(len(board.under_way))
        await asyncio.sleep(0)

    run(closed_loop(one_run, board, workers=3, runs=10, duration_s=None))
    assert [notes.number for notes in sorted(board.ended, key=lambda notes: notes.number)] == list(range(1, 11))
    assert max(together) == 3
    assert board.under_way == {}


def test_when_the_time_is_over_what_goes_on_is_dropped_and_counted() -> None:
    board = Board()

    async def one_run(notes: RunNotes) -> None:
        await (asyncio.sleep(0) if notes.number <= 2 else asyncio.Event().wait())

    run_virtual(closed_loop(one_run, board, workers=2, runs=None, duration_s=60))
    assert (len(board.ended), sorted(board.under_way)) == (2, [3, 4])
    assert board.ended_at == 60


def test_a_failed_run_is_noted_and_the_worker_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_AFTER_FAILURE_S", 0.0)
    board = Board()

    async def one_run(notes: RunNotes) -> None:
        if notes.number == 1:
            raise RunFailedError("cut", "ended early")

    run(closed_loop(one_run, board, workers=1, runs=2, duration_s=None))
    assert [notes.failure is None for notes in board.ended] == [False, True]
    assert board.failed == 1


def test_a_time_limit_inside_a_run_is_not_taken_for_the_end_of_the_load() -> None:
    async def one_run(_: RunNotes) -> None:
        raise TimeoutError("of its own")

    with pytest.raises(ExceptionGroup):
        run(closed_loop(one_run, Board(), workers=1, runs=1, duration_s=60))
