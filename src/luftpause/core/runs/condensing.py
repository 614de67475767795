"""What is kept at hand of a run that is over, in place of its history: what its views show, and what a spawn repeats.

Its conversation and its tools are in the journal's archive; whoever wants them reads the history back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, assert_never

from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.events import Exceeded, RunSpawned
from luftpause.core.runs.state import Cancelled, Failed, Finished, Phase, Run, State, Totals, Tree
from luftpause.core.runs.tree import ancestors, placed, tree_of

TASK_SHOWN_MAX: Final = 200


class Outcome(Enum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCondensed:
    """A run that is over, short.

    Attributes:
        spawn: without what only its turns needed, see `brief`.
        own: its own work.
        outcome: how it ended: `text` is its result or why it has none; `structured` and `exceeded` as in its ending.
        tree_grants: long names of tools that its tree may call without asking.
        origin_run: as in `Run`.
    """

    run: RunId
    spawn: RunSpawned
    own: Totals
    outcome: Outcome
    text: str
    began: ActiveMs
    ended: ActiveMs
    structured: object = None
    exceeded: Exceeded | None = None
    models_failed: int = 0
    calls_before: int = 0
    follow_ups: int = 0
    landing: bool = False
    repaired: bool = False
    grants: frozenset[str] = frozenset()
    tree_grants: frozenset[str] = frozenset()
    origin_run: RunId | None = None


def condense(state: State, run: RunId) -> RunCondensed | None:
    """Return what is kept of a known run, None unless it is over."""
    known = state.runs[run]
    structured, exceeded = None, None
    match known.phase:
        case Finished():
            outcome, text, structured = Outcome.FINISHED, known.phase.result, known.phase.structured
        case Failed():
            outcome, text = Outcome.FAILED, known.phase.error
        case Cancelled():
            outcome, text, exceeded = Outcome.CANCELLED, known.phase.why, known.phase.exceeded
        case _:
            return None
    return RunCondensed(
        run=run,
        spawn=brief(known.spawn),
        own=known.own,
        outcome=outcome,
        text=text,
        structured=structured,
        exceeded=exceeded,
        began=known.began,
        ended=known.ended,
        models_failed=known.models_failed,
        calls_before=known.calls_before,
        follow_ups=known.follow_ups,
        landing=known.landing,
        repaired=known.repaired,
        grants=known.grants,
        tree_grants=state.trees.get(known.tree, Tree()).grants,
        origin_run=known.origin_run,
    )


def brief(spawn: RunSpawned) -> RunSpawned:
    """Return a spawn without tools, schema and prompts: no turn will need them, and they are most of it."""
    return replace(spawn, task=spawn.task[:TASK_SHOWN_MAX], system=None, tools=(), output_schema=None)


def restore(state: State, kept: RunCondensed) -> State:
    """Return the state with a run that is over, as if its history had been replayed below its parent."""
    if kept.run in state.runs:
        return state
    tree = tree_of(state, kept.spawn)
    run = Run(
        spawn=kept.spawn,
        tree=tree,
        phase=_phase(kept),
        messages=(),
        own=kept.own,
        subtree=kept.own,
        began=kept.began,
        ended=kept.ended,
        models_failed=kept.models_failed,
        calls_before=kept.calls_before,
        follow_ups=kept.follow_ups,
        landing=kept.landing,
        repaired=kept.repaired,
        grants=kept.grants,
        origin_run=kept.origin_run,
    )
    state = placed(state, run)
    if kept.tree_grants:
        shared = state.trees.get(tree, Tree())
        state = replace(state, trees=state.trees.set(tree, replace(shared, grants=shared.grants | kept.tree_grants)))
    for above in ancestors(state, kept.run):
        grown = replace(above, subtree=above.subtree.plus(kept.own), ended=max(above.ended, kept.ended))
        state = replace(state, runs=state.runs.set(above.spawn.run, grown))
    return state


def forget(state: State, runs: Sequence[RunId]) -> State:
    """Return the state without these runs: whole trees that are over."""
    if not runs:
        return state
    left, trees, keys = state.runs, state.trees, state.keys
    for run in runs:
        known = left.get(run)
        if known is None:
            continue
        left = left.delete(run)
        if run in trees:
            trees = trees.delete(run)
        key = (known.spawn.principal, known.spawn.idempotency_key or "")
        if keys.get(key) == run:
            keys = keys.delete(key)
    return replace(state, runs=left, trees=trees, keys=keys)


def _phase(kept: RunCondensed) -> Phase:
    match kept.outcome:
        case Outcome.FINISHED:
            return Finished(result=kept.text, structured=kept.structured)
        case Outcome.FAILED:
            return Failed(error=kept.text)
        case Outcome.CANCELLED:
            return Cancelled(why=kept.text, exceeded=kept.exceeded)
        case _:
            assert_never(kept.outcome)
