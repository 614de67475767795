"""Figures from notes."""

import pytest

from luftpause.testkit.load.runs import Board, RunFailedError, RunNotes, TurnSeen
from luftpause.testkit.load.summary import percentile, progress_line, summarise, summary_lines


def notes(run_s: float, *first_token_s: float, failure: RunFailedError | None = None) -> RunNotes:
    turns = [
        TurnSeen(first_token_s=at, prompt_tokens=100, completion_tokens=5, cached_tokens=40) for at in first_token_s
    ]
    return RunNotes(number=1, started_at=0.0, turns=turns, tool_calls=1, run_s=run_s, failure=failure)


BOARD = Board(
    started_at=10.0,
    ended_at=40.0,
    ended=[
        notes(1.0, 0.1, 0.2),
        notes(3.0, 0.3),
        notes(9.0, 0.4, failure=RunFailedError("cut", "ended early")),
        notes(9.0, failure=RunFailedError("http_429", "busy")),
    ],
    under_way={5: notes(0.0, 0.25), 6: notes(0.0)},
)


def test_only_runs_that_ended_well_count_as_throughput_and_run_time() -> None:
    summary = summarise(BOARD)
    assert (summary.runs, summary.failed, summary.unfinished) == (2, 2, 2)
    assert (summary.duration_s, summary.runs_per_min) == (30.0, 4.0)
    assert (summary.run_p50_s, summary.run_p99_s) == (1.0, 3.0)


def test_turns_count_whatever_became_of_their_run() -> None:
    summary = summarise(BOARD)
    assert (summary.turns, summary.tool_calls) == (5, 6)
    assert (summary.first_token_p50_s, summary.first_token_p99_s) == (0.25, 0.4)
    assert (summary.prompt_tokens, summary.cached_tokens, summary.completion_tokens) == (500, 200, 25)


def test_errors_are_counted_by_kind_and_the_first_is_quoted() -> None:
    summary = summarise(BOARD)
    assert summary.errors == {"cut": 1, "http_429": 1}
    assert summary.first_error == "cut: ended early"
    assert "cut × 1, http_429 × 1" in "\n".join(summary_lines(summary))


def test_a_load_in_which_nothing_happened_has_no_percentiles() -> None:
    summary = summarise(Board(started_at=0.0, ended_at=0.0))
    assert (summary.run_p50_s, summary.first_token_p99_s, summary.runs_per_min) == (None, None, 0.0)
    assert "p50 -" in "\n".join(summary_lines(summary))


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (100, 100), (1, 1)])
def test_a_percentile_is_a_value_that_occurred(percent: int, value: int) -> None:
    assert percentile(range(100, 0, -1), percent) == value


def test_progress_counts_what_ended_what_failed_and_what_goes_on() -> None:
    line = progress_line(Board(started_at=1.0, ended=BOARD.ended, under_way=BOARD.under_way), 3.5)
    assert line.strip() == "2.5 s  2 ended well, 2 failed, 2 under way"
