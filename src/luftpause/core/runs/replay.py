"""From a journal back to the state: the same `decide`, with its actions left undone.

Histories of different runs have no order among each other, except that a parent is replayed before its children: how a
run stands follows from its own events, and what runs share does not hang on whose came first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from luftpause.core.model.ids import ANONYMOUS_CALLER, ANONYMOUS_PRINCIPAL, ActiveMs, ModelName, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.advance import decide, without_conversation
from luftpause.core.runs.condensing import RunCondensed, restore
from luftpause.core.runs.events import Event, RunFailed, RunSpawned
from luftpause.core.runs.messages import Message
from luftpause.core.runs.state import Run, State
from luftpause.core.runs.tree import with_run


@dataclass(frozen=True, slots=True)
class Entry:
    """An event with the moment of its tree's clock that it is decided on with, in life and in replay."""

    event: Event
    at: ActiveMs


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a journal holds of one run.

    Attributes:
        entries: in order, as far as they are sound, and the run's ending if that is: it holds whatever was lost before.
        condensed: stands for all entries of a run that is over, when only that is at hand.
        damage: empty, or what is wrong with the rest: a run that had not ended must not go on.
    """

    run: RunId
    entries: tuple[Entry, ...] = ()
    condensed: RunCondensed | None = None
    damage: str = ""


def replay(histories: Iterable[History]) -> State:
    """Return the state after these histories. A damaged one without an ending makes its run a failed one, for good."""
    known = {history.run: history for history in histories}
    state = State()
    for history in _parents_first(known):
        if history.condensed is not None:
            state = restore(state, history.condensed)
        entries = _with_beginning(history) if history.damage else history.entries
        for entry in entries:
            state = decide(state, entry.event, entry.at).state
        if history.damage:
            state = decide(state, RunFailed(run=history.run, error=history.damage), _last(entries)).state
        if history.run in state.runs:
            state = without_conversation(state, state.runs[history.run])
    return state


def clocks(state: State, histories: Iterable[History]) -> dict[RunId, ActiveMs]:
    """Return how far each tree's clock had come, by its root."""
    trees: dict[RunId, ActiveMs] = {}
    for history in histories:
        run = state.runs.get(history.run)
        if run is not None:
            last = _last(history.entries) if history.condensed is None else history.condensed.ended
            trees[run.tree] = max(trees.get(run.tree, ActiveMs(0)), last)
    return trees


def conversation(history: History) -> tuple[Message, ...]:
    """Return all that was said in a run, for one that the state has no conversation of."""
    run = _alone(history)
    return () if run is None else run.messages


def recalled(state: State, history: History) -> State:
    """Give a run back what it was given and what was said in it, so that it can go on."""
    whole = _alone(history)
    if whole is None or history.run not in state.runs:
        return state
    return with_run(state, replace(state.runs[history.run], spawn=whole.spawn, messages=whole.messages))


def unfinished(state: State) -> tuple[RunId, ...]:
    """Return the runs that are not over, parents before their children."""
    open_runs = {run: None for run, known in state.runs.items() if not known.is_over}
    order: dict[RunId, None] = {}
    for start in sorted(open_runs):
        chain: list[RunId] = []
        current: RunId | None = start
        while current is not None and current not in order:
            chain.append(current)
            known_run = state.runs.get(current)
            current = None if known_run is None else known_run.spawn.parent
        order.update((run, None) for run in reversed(chain))
    return tuple(run for run in order if run in open_runs)


def _alone(history: History) -> Run | None:
    """The run as its own events make it: what others did to it is among them."""
    state = State()
    for entry in history.entries:
        state = decide(state, entry.event, entry.at).state
    return state.runs.get(history.run)


def _last(entries: Sequence[Entry]) -> ActiveMs:
    return entries[-1].at if entries else ActiveMs(0)


def _with_beginning(history: History) -> tuple[Entry, ...]:
    """A run whose spawn was lost is still known by its handle, to whoever needs no name: whose it was is lost too."""
    entries = history.entries
    if history.condensed is not None or (entries and isinstance(entries[0].event, RunSpawned)):
        return entries
    lost = RunSpawned(
        run=history.run,
        task="",
        model=ModelName(""),
        service_class=ServiceClass.INTERACTIVE,
        caller=ANONYMOUS_CALLER,
        principal=ANONYMOUS_PRINCIPAL,
    )
    return (Entry(lost, entries[0].at if entries else ActiveMs(0)), *entries)


def _parents_first(known: Mapping[RunId, History]) -> list[History]:
    placed: dict[RunId, History] = {}
    for history in known.values():
        chain: list[History] = []
        current: History | None = history
        while current is not None and current.run not in placed:
            chain.append(current)
            current = _parent_history(known, current)
        placed.update((link.run, link) for link in reversed(chain))
    return list(placed.values())


def _parent_history(known: Mapping[RunId, History], history: History) -> History | None:
    first = _spawn_of(history)
    return None if first is None or first.parent is None else known.get(first.parent)


def _spawn_of(history: History) -> RunSpawned | None:
    if history.condensed is not None:
        return history.condensed.spawn
    first = history.entries[0].event if history.entries else None
    return first if isinstance(first, RunSpawned) else None
