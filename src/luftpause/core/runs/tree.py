"""Runs spawned under runs: who belongs to whom, whose work counts for whom, and who waits for whose end.

A parent that is not known (its journal was damaged) makes its child the root of a tree of its own.
"""

from collections.abc import Iterator
from dataclasses import replace

from immutables import Map

from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.events import RunSpawned
from luftpause.core.runs.state import Run, State, Totals, Tree, WaitingForRuns


def ancestors(state: State, run: RunId) -> Iterator[Run]:
    """Yield parent, grandparent and so on, as far as they are known."""
    current = state.runs.get(run)
    while current is not None and current.spawn.parent is not None:
        current = state.runs.get(current.spawn.parent)
        if current is not None:
            yield current


def descendants(state: State, run: RunId) -> Iterator[Run]:
    """Yield children before their own children, each level in the order of spawning."""
    waiting = [run]
    while waiting:
        level: list[RunId] = []
        for parent in waiting:
            for child in state.runs[parent].children:
                level.append(child)
                yield state.runs[child]
        waiting = level


def adopt(state: State, run: Run) -> State:
    """Add a new run, below its parent where that is known."""
    return opened(placed(state, run), run.spawn.run)


def placed(state: State, run: Run) -> State:
    """Enter a run, over or not, wherever it is looked for: below its parent, by its key, among those that wait."""
    spawn = run.spawn
    runs = state.runs.set(spawn.run, run)
    parent = None if spawn.parent is None else state.runs.get(spawn.parent)
    if parent is not None:
        runs = runs.set(parent.spawn.run, replace(parent, children=(*parent.children, spawn.run)))
    state = _with_runs(state, runs)
    if spawn.budget is not None and spawn.budget.seconds is not None:
        tree = state.trees.get(run.tree, Tree())
        state = replace(state, trees=state.trees.set(run.tree, replace(tree, timed=tree.timed | {spawn.run})))
    if spawn.idempotency_key is not None:
        key = (spawn.principal, spawn.idempotency_key)
        # Two runs of one key are two damaged histories; which of them a retry finds must not hang on their order.
        state = replace(state, keys=state.keys.set(key, min(spawn.run, state.keys.get(key, spawn.run))))
    if isinstance(run.phase, WaitingForRuns):
        for awaited in spawn.after:
            others = state.waiting.get(awaited, frozenset())
            state = replace(state, waiting=state.waiting.set(awaited, others | {spawn.run}))
    return state


def opened(state: State, run: RunId) -> State:
    """Count a run as one that is not over, for itself and for every run above it."""
    runs = state.runs
    for each in (state.runs[run], *ancestors(state, run)):
        runs = runs.set(each.spawn.run, replace(each, open_runs=each.open_runs + 1))
    return replace(state, runs=runs, running=state.running + 1)


def closed(state: State, run: RunId, now: ActiveMs) -> State:
    """Count a run as one that is over, for itself and for every run above it."""
    runs = state.runs
    for each in (state.runs[run], *ancestors(state, run)):
        over = replace(each, open_runs=each.open_runs - 1, ended=max(each.ended, now))
        runs = runs.set(each.spawn.run, over)
    return replace(state, runs=runs, running=state.running - 1)


def no_longer_waiting(state: State, run: Run) -> State:
    """Take a run that waited for others out of the index of those that do."""
    waiting = state.waiting
    for awaited in dict.fromkeys(run.spawn.after):
        others = waiting.get(awaited, frozenset()) - {run.spawn.run}
        if others:
            waiting = waiting.set(awaited, others)
        elif awaited in waiting:
            waiting = waiting.delete(awaited)
    return replace(state, waiting=waiting)


def tree_of(state: State, spawn: RunSpawned) -> RunId:
    """Return the root that a run spawned like this belongs to."""
    parent = None if spawn.parent is None else state.runs.get(spawn.parent)
    return spawn.run if parent is None else parent.tree


def depth_of(state: State, run: RunId) -> int:
    """Return how many runs stand above a known run, itself included."""
    return 1 + sum(1 for _ in ancestors(state, run))


def credit(state: State, run: RunId, work: Totals) -> State:
    """Count work for a run and for every run above it."""
    mine = state.runs[run]
    runs = state.runs.set(run, replace(mine, own=mine.own.plus(work), subtree=mine.subtree.plus(work)))
    for above in ancestors(state, run):
        runs = runs.set(above.spawn.run, replace(above, subtree=above.subtree.plus(work)))
    return _with_runs(state, runs)


def with_run(state: State, run: Run) -> State:
    """Put a run's new standing in place of its old one."""
    return _with_runs(state, state.runs.set(run.spawn.run, run))


def _with_runs(state: State, runs: Map[RunId, Run]) -> State:
    # Not by `replace`, which takes four times as long: every event comes by here.
    return State(runs=runs, running=state.running, trees=state.trees, waiting=state.waiting, keys=state.keys)
