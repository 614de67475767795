"""What runs may use, they and all below them: when a limit is passed, when it nearly is, and what is left.

A run stands under its own budget and under that of every run above it. Used and limit are whole numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.events import Exceeded
from luftpause.core.runs.state import Run, State
from luftpause.core.runs.tree import ancestors


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a run's subtree has used so far, in the units of Limits."""

    tokens: int
    tool_calls: int
    seconds: int


def used_of(run: Run, now: ActiveMs) -> Used:
    """Return what a run and all below it have used; its seconds stand still while nothing of it runs."""
    until = now if run.open_runs else run.ended
    return Used(
        tokens=run.subtree.tokens,
        tool_calls=run.subtree.tool_calls,
        seconds=max(until - run.began, 0) // 1000,
    )


def passed(run: Run, now: ActiveMs) -> Exceeded | None:
    """Return the limit of the run's own budget that was passed, the first if several were."""
    limits, used, name = run.spawn.budget, used_of(run, now), run.spawn.run
    if limits is None:
        return None
    if limits.tokens is not None and used.tokens > limits.tokens:
        return Exceeded(run=name, which="tokens", used=used.tokens, limit=limits.tokens)
    if limits.tool_calls is not None and used.tool_calls > limits.tool_calls:
        return Exceeded(run=name, which="toolCalls", used=used.tool_calls, limit=limits.tool_calls)
    if limits.seconds is not None and used.seconds >= limits.seconds:
        return Exceeded(run=name, which="seconds", used=used.seconds, limit=limits.seconds)
    return None


def exceeded(state: State, run: Run, now: ActiveMs) -> Exceeded | None:
    """Return the limit that was passed among all that the run stands under, the nearest first."""
    return next((found for each in _budgeted(state, run) if (found := passed(each, now)) is not None), None)


def without_tokens(state: State, run: Run) -> Exceeded | None:
    """Return the limit that leaves no token for another turn."""
    for each in _budgeted(state, run):
        limit = each.spawn.budget.tokens if each.spawn.budget else None
        if limit is not None and each.subtree.tokens >= limit:
            return Exceeded(run=each.spawn.run, which="tokens", used=each.subtree.tokens, limit=limit)
    return None


def tokens_left(state: State, run: Run) -> int | None:
    """Return the tokens that the run and all above it may still use, None for no limit."""
    lefts = [
        each.spawn.budget.tokens - each.subtree.tokens
        for each in _budgeted(state, run)
        if each.spawn.budget is not None and each.spawn.budget.tokens is not None
    ]
    return min(lefts, default=None)


def nearly_spent(state: State, run: Run, now: ActiveMs, *, calls_matter: bool) -> bool:
    """Whether the next turn should be the last: four fifths of a limit are used, or no tool call is left."""
    for each in _budgeted(state, run):
        limits, used = each.spawn.budget, used_of(each, now)
        if limits is None:
            continue
        if limits.tokens is not None and used.tokens * 5 >= limits.tokens * 4:
            return True
        # Milliseconds, for whole seconds are too coarse for short limits.
        if limits.seconds is not None and (now - each.began) * 5 >= limits.seconds * 1000 * 4:
            return True
        if calls_matter and limits.tool_calls is not None and used.tool_calls >= limits.tool_calls:
            return True
    return False


def next_deadline(state: State, tree: RunId, now: ActiveMs) -> ActiveMs | None:
    """Return when the next limit of seconds in a tree is passed, of those that are not and still matter."""
    shared = state.trees.get(tree)
    deadlines = [_deadline(state.runs[run]) for run in (shared.timed if shared else ()) if state.runs[run].open_runs]
    return min((each for each in deadlines if each > now), default=None)


def overdue(state: State, tree: RunId, now: ActiveMs) -> tuple[Exceeded, ...]:
    """Return the limits in a tree that were passed without anybody's doing."""
    shared = state.trees.get(tree)
    timed = [state.runs[run] for run in sorted(shared.timed if shared else ())]
    found = (passed(run, now) for run in timed if run.open_runs)
    return tuple(each for each in found if each is not None)


def _deadline(run: Run) -> ActiveMs:
    """When a run's limit of seconds is passed: at once, in case it had none."""
    seconds = run.spawn.budget.seconds if run.spawn.budget else None
    return ActiveMs(run.began + (seconds or 0) * 1000)


def _budgeted(state: State, run: Run) -> Iterator[Run]:
    if run.spawn.budget is not None:
        yield run
    yield from (above for above in ancestors(state, run.spawn.run) if above.spawn.budget is not None)
