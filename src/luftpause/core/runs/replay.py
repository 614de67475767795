"""From a journal back to the state: the same `decide`, with its actions left undone.

Histories of different runs have no order among each other, except that a parent is replayed before its children.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from luftpause.core.model.ids import ANONYMOUS_CALLER, ANONYMOUS_PRINCIPAL, Instant, ModelName, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.advance import decide
from luftpause.core.runs.events import Event, RunFailed, RunSpawned
from luftpause.core.runs.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a journal holds of one run.

    Attributes:
        events: in order, as far as they are sound, and the run's ending if that is: it holds whatever was lost before.
        damage: empty, or what is wrong with the rest: a run that had not ended must not go on.
    """

    run: RunId
    events: tuple[Event, ...]
    damage: str = ""


def replay(histories: Iterable[History], now: Instant) -> State:
    """Return the state after these histories. A damaged one without an ending makes its run a failed one, for good."""
    known = {history.run: history for history in histories}
    state = State()
    for history in _parents_first(known):
        for event in _with_beginning(history) if history.damage else history.events:
            state = decide(state, event, now).state
        if history.damage:
            state = decide(state, RunFailed(run=history.run, error=history.damage), now).state
    return state


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


def _with_beginning(history: History) -> tuple[Event, ...]:
    """A run whose spawn was lost is still known by its handle, to whoever needs no name: whose it was is lost too."""
    if history.events[:1] and isinstance(history.events[0], RunSpawned):
        return history.events
    lost = RunSpawned(
        run=history.run,
        task="",
        model=ModelName(""),
        service_class=ServiceClass.INTERACTIVE,
        caller=ANONYMOUS_CALLER,
        principal=ANONYMOUS_PRINCIPAL,
    )
    return (lost, *history.events)


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
    first = history.events[0] if history.events else None
    if not isinstance(first, RunSpawned) or first.parent is None:
        return None
    return known.get(first.parent)
