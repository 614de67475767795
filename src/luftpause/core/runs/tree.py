"""Runs spawned under runs: who belongs to whom, and whose work counts for whom.

A parent that is not known (its journal was damaged) makes its child the root of a tree of its own.
"""

from collections.abc import Iterator
from dataclasses import replace

from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import RunSpawned
from luftpause.core.runs.state import Run, State, Totals


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
    runs = state.runs.set(run.spawn.run, run)
    parent = None if run.spawn.parent is None else state.runs.get(run.spawn.parent)
    if parent is not None:
        runs = runs.set(parent.spawn.run, replace(parent, children=(*parent.children, run.spawn.run)))
    return State(runs=runs, running=state.running + 1)


def tree_of(state: State, spawn: RunSpawned) -> RunId:
    """Return the root that a run spawned like this belongs to."""
    parent = None if spawn.parent is None else state.runs.get(spawn.parent)
    return spawn.run if parent is None else parent.tree


def credit(state: State, run: RunId, work: Totals) -> State:
    """Count work for a run and for every run above it."""
    mine = state.runs[run]
    runs = state.runs.set(run, replace(mine, own=mine.own.plus(work), subtree=mine.subtree.plus(work)))
    for above in ancestors(state, run):
        runs = runs.set(above.spawn.run, replace(above, subtree=above.subtree.plus(work)))
    return replace(state, runs=runs)
