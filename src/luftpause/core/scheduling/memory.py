"""What must outlive a scheduler, and what the next one makes of it: what tools taught, and how replicas stand.

Runs and turns are not in it: dataplanes tell those. What makes no sense is left out, whoever wrote it.
"""

from dataclasses import replace
from typing import Final

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.ages import age_in, instant_before
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import KnownReplica, KnownTool, MemoryRestored
from luftpause.core.scheduling.state import Past, State, Window
from luftpause.core.scheduling.tool_history import BUCKETS, HISTORIES_MAX, History

REPLICAS_MAX: Final = 1024
"""Replicas that are remembered, those declared first."""

_WEIGHT_MAX: Final = 1e12


def to_remember(state: State, now: Instant) -> MemoryRestored:
    """Return what the next scheduler is to be told."""
    tools = [
        KnownTool(
            tool=tool,
            returned=history.returned,
            returns=history.returns,
            losses=history.losses,
            unit=history.unit,
            age_s=age_in(now - history.heard_at),
        )
        for tool, history in sorted(state.tools.histories.items())
    ]
    declared = sorted((replica.order, name) for name, replica in state.replicas.items() if replica.declared)
    replicas = [state.replicas[name] for _, name in declared[:REPLICAS_MAX]]
    return MemoryRestored(
        tools=tuple(tools),
        replicas=tuple(
            KnownReplica(
                replica=each.replica,
                placed=each.placed,
                window=_told(each.window),
                speed=each.seat.speed,
                bears=each.seat.window,
            )
            for each in replicas
        ),
    )


def restore(draft: Draft, event: MemoryRestored, now: Instant) -> None:
    """Take in what was remembered. A replica's part waits until it is found healthy for the first time."""
    tools = draft.tools
    histories = tools.histories
    for known in sensible(event).tools:
        if known.tool not in histories and len(histories) < HISTORIES_MAX:
            heard_at = instant_before(now, known.age_s)
            history = History(known.returned, known.returns, known.losses, known.unit, heard_at)
            histories = histories.set(known.tool, history)
    draft.tools = tools._replace(histories=histories)
    for replica in event.replicas[:REPLICAS_MAX]:
        ours = draft.replicas.get(replica.replica)
        if ours is None or not ours.seen_healthy:
            past = Past(max(0, replica.placed), _window(replica), _speed(replica), _bears(replica))
            draft.past = draft.past.set(replica.replica, past)


def sensible(event: MemoryRestored) -> MemoryRestored:
    """Return what is taken in of a memory's tools, each number a number and each age an age."""
    tools = [replace(known, age_s=age_in(known.age_s)) for known in event.tools if _makes_sense(known)]
    return replace(event, tools=tuple(tools))


def _makes_sense(known: KnownTool) -> bool:
    weights = (*known.returns, *known.losses)
    return (
        len(known.returns) == len(known.losses) == BUCKETS
        and all(0.0 <= weight <= _WEIGHT_MAX for weight in weights)
        and 1.0 <= known.unit <= _WEIGHT_MAX
        and known.returned >= 0
    )


def _told(window: Window | None) -> tuple[int, int | None, int] | None:
    return None if window is None else (window.size, window.refused_at, window.answered)


def _speed(known: KnownReplica) -> float:
    return known.speed if 0.0 < known.speed <= _WEIGHT_MAX else 0.0


def _bears(known: KnownReplica) -> int | None:
    return known.bears if known.bears is not None and known.bears > 0 else None


def _window(known: KnownReplica) -> Window | None:
    if known.window is None:
        return None
    size, refused_at, answered = known.window
    if refused_at is None:
        return Window(size) if size >= 1 else None
    return Window(size, refused_at, answered) if 0 <= answered < size <= refused_at else None
