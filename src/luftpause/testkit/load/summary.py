"""From notes to figures: percentiles by nearest rank, counts, and two ways to show them. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from luftpause.testkit.load.runs import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A load run in figures. Times in seconds, None where nothing was measured.

    Attributes:
        runs: runs that ended well.
        failed: runs that ended early; `errors` counts them by kind, `first_error` quotes the first.
        unfinished: runs under way when the time was over.
        runs_per_min: runs that ended well, per minute of the whole time.
        turns: finished turns, whatever became of their run; first tokens and tokens are theirs.
    """

    duration_s: float
    runs: int
    failed: int
    unfinished: int
    runs_per_min: float
    run_p50_s: float | None
    run_p99_s: float | None
    first_token_p50_s: float | None
    first_token_p99_s: float | None
    turns: int
    tool_calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    errors: dict[str, int]
    first_error: str | None


def summarise(board: Board) -> Summary:
    """Return the figures of a load that is over."""
    assert board.ended_at is not None
    duration_s = board.duration_s(board.ended_at)
    well = [run for run in board.ended if run.failure is None]
    failures = [run.failure for run in board.ended if run.failure is not None]
    runs = [*board.ended, *board.under_way.values()]
    turns = [turn for run in runs for turn in run.turns]
    return Summary(
        duration_s=_rounded(duration_s),
        runs=len(well),
        failed=len(failures),
        unfinished=len(board.under_way),
        runs_per_min=_rounded(len(well) * 60 / duration_s) if duration_s > 0 else 0.0,
        run_p50_s=percentile((run.run_s for run in well), 50),
        run_p99_s=percentile((run.run_s for run in well), 99),
        first_token_p50_s=percentile((turn.first_token_s for turn in turns), 50),
        first_token_p99_s=percentile((turn.first_token_s for turn in turns), 99),
        turns=len(turns),
        tool_calls=sum(run.tool_calls for run in runs),
        prompt_tokens=sum(turn.prompt_tokens for turn in turns),
        cached_tokens=sum(turn.cached_tokens for turn in turns),
        completion_tokens=sum(turn.completion_tokens for turn in turns),
        errors=dict(sorted(Counter(failure.kind for failure in failures).items())),
        first_error=f"{failures[0].kind}: {failures[0]}" if failures else None,
    )


def percentile(values: Iterable[float], percent: int) -> float | None:
    """Return the smallest value that at least `percent` % of all do not exceed; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return _rounded(ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)])


def summary_lines(summary: Summary) -> Sequence[str]:
    """Return the summary as a person reads it."""
    cached = f"{100 * summary.cached_tokens / summary.prompt_tokens:.1f} %" if summary.prompt_tokens else "-"
    errors = ", ".join(f"{kind} × {count}" for kind, count in summary.errors.items())
    rows = [
        ("runs", f"{summary.runs} in {summary.duration_s:.1f} s, {summary.runs_per_min:.1f} per minute"),
        ("failed", f"{summary.failed}" + (f" ({errors})" if errors else "")),
        ("unfinished", f"{summary.unfinished}"),
        ("run time", f"p50 {_seconds(summary.run_p50_s)}, p99 {_seconds(summary.run_p99_s)}"),
        ("first token", f"p50 {_seconds(summary.first_token_p50_s)}, p99 {_seconds(summary.first_token_p99_s)}"),
        ("turns", f"{summary.turns}, with {summary.tool_calls} tool calls"),
        ("tokens", f"{summary.prompt_tokens} prompt ({cached} from cache), {summary.completion_tokens} completion"),
    ]
    if summary.first_error is not None:
        rows.append(("first error", summary.first_error))
    return [f"{name:<12} {value}" for name, value in rows]


def progress_line(board: Board, now: float) -> str:
    """Return one line that says how far the load is."""
    return (
        f"{board.duration_s(now):5.1f} s  {len(board.ended) - board.failed} ended well, {board.failed} failed, "
        f"{len(board.under_way)} under way"
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"


def _rounded(value: float) -> float:
    return round(value, 4)
