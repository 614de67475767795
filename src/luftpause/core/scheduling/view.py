"""The state as people and programs see it: plain values, counts and sentences, no ids of runs or turns.

Reads indices and heads of lanes only: looking costs the same however many turns a caller has, and names no more callers
than a person reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import nsmallest
from typing import Final

from luftpause.core.model.ids import CallerId, Instant, ModelName, ReplicaId, ToolName
from luftpause.core.model.replicas import EngineKind, Load, ReplicaKind
from luftpause.core.model.tool_names import tool_of
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.admission import capacity, why_held
from luftpause.core.scheduling.affinity import candidates
from luftpause.core.scheduling.events import RunPhase
from luftpause.core.scheduling.fairness import CLASSES_IN_ORDER
from luftpause.core.scheduling.parts import SEEN_IN_ORDER
from luftpause.core.scheduling.places import Places, first_of, number_of
from luftpause.core.scheduling.reasons import BehindCaller, HoldReason
from luftpause.core.scheduling.residency.holding import why_model_held
from luftpause.core.scheduling.residency.view import DeviceView, ModelView, view_devices, view_models
from luftpause.core.scheduling.state import HeldTurn, Lane, Replica, State, Window
from luftpause.core.scheduling.tool_history import NOTHING_HEARD, History
from luftpause.core.scheduling.tool_returns import return_law
from luftpause.core.scheduling.working_set.state import Seat
from luftpause.core.scheduling.working_set.waiting import why_it_waits

TOOLS_SHOWN: Final = 50

HELD_ROWS_MAX: Final = 50
"""So many callers of each class have a row of their own."""

OTHER_CALLERS: Final = CallerId("other")
"""Stands for all others in one row."""


class ReplicaPhase(Enum):
    """What a replica is up to, in one word."""

    STARTING = "starting"
    """Declared, and no probe has found it healthy yet."""
    READY = "ready"
    FULL = "full"
    """As many turns are in flight as its capacity is; or its engine asked for no new ones for a while."""
    DOWN = "down"
    """It was healthy once and is not now."""
    LEAVING = "leaving"
    """Removed, or about to be: it takes no more turns, and some are still in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensView:
    """A replica's memory in tokens, as policy `working-set` sees it: turns in flight, places kept, and what it bears.

    `capacity` is None where nobody knows; `hits` is the share that runs found lately of what they expected there.
    """

    in_flight: int
    kept: int
    capacity: int | None
    hits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaView:
    """One replica. `why` says what made its last probe fail.

    `capacity` is None while its turns are not capped; `kept` is the room that batch leaves free. `window` is not None
    while an outage or a refusal caps its turns, and is part of the capacity. `foreign` counts what others sent to its
    engine past us, which is off the capacity already.
    """

    name: ReplicaId
    kind: ReplicaKind
    models: tuple[ModelName, ...]
    engine: EngineKind
    phase: ReplicaPhase
    healthy: bool
    in_flight: int
    capacity: int | None
    kept: int
    placed: int
    load: Load | None
    foreign: int
    why: str
    window: Window | None
    tokens: TokensView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldView:
    """The held turns of a class, of one caller or of all that stand behind those who are named.

    `oldest_s`: how long the one that came first waits, seconds. `reason`: why the one that goes first waits.
    """

    service_class: ServiceClass
    caller: CallerId
    count: int
    oldest_s: float
    reason: HoldReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsView:
    """How many runs of a class are in a phase."""

    phase: RunPhase
    service_class: ServiceClass
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolView:
    """How long runs stay out on a tool, times in seconds. Of several called at once only the slowest counts.

    Attributes:
        server: empty where the name that models call it by does not tell it.
        returned: runs that came back from it, as long as it is remembered.
        running: runs that are out on it now.
        p50_s: within so long half of the runs come back.
        p90_s: and nine of ten.
        expected_return_s: how much longer those stay out that are out now, on average; without any, a run that would
            go out now.
    """

    server: str
    tool: str
    returned: int
    running: int
    p50_s: float
    p90_s: float
    expected_return_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView:
    """Everything. Held turns stand in the order in which they would go out, tools as `view_tools` has them."""

    replicas: tuple[ReplicaView, ...]
    held: tuple[HeldView, ...]
    runs: tuple[RunsView, ...]
    tools: tuple[ToolView, ...]
    models: tuple[ModelView, ...]
    devices: tuple[DeviceView, ...]


def view(state: State, now: Instant) -> StateView:
    """Return what to show."""
    replicas = sorted(state.replicas.values(), key=lambda replica: replica.order)
    return StateView(
        replicas=tuple(_view_replica(state, replica) for replica in replicas if replica.spec is not None),
        held=_view_held(state, now),
        runs=tuple(
            RunsView(phase=phase, service_class=service_class, count=count)
            for (phase, service_class), count in zip(SEEN_IN_ORDER, state.run_counts, strict=True)
            if count
        ),
        tools=view_tools(state, now),
        models=view_models(state, now),
        devices=view_devices(state),
    )


def view_tools(state: State, now: Instant) -> tuple[ToolView, ...]:
    """Return the busiest tools, TOOLS_SHOWN at most: those with most runs out now, then those with most returns."""
    histories, running = state.tools.histories, state.tools.running(now)
    ranks = [
        (-sum(count for _, count in running.get(tool, ())), -histories.get(tool, NOTHING_HEARD).returned, tool)
        for tool in {**dict.fromkeys(histories), **dict.fromkeys(running)}
    ]
    return tuple(
        _view_tool(tool, histories.get(tool, NOTHING_HEARD), running.get(tool, ()))
        for _, _, tool in nsmallest(TOOLS_SHOWN, ranks)
    )


def _view_tool(name: ToolName, history: History, running: Sequence[tuple[float, int]]) -> ToolView:
    law = return_law(history, running)
    expected = running or ((0.0, 1),)
    count = sum(runs for _, runs in expected)
    server, tool = tool_of(name)
    return ToolView(
        server=server,
        tool=tool,
        returned=history.returned,
        running=sum(runs for _, runs in running),
        p50_s=law.quantile(0.5),
        p90_s=law.quantile(0.9),
        expected_return_s=sum(law.expected_return(elapsed_s) * runs for elapsed_s, runs in expected) / count,
    )


def held_by_class(state: State) -> dict[ServiceClass, int]:
    """Return how many turns of each class are held, zero included."""
    counts = dict.fromkeys(ServiceClass, 0)
    for lanes in state.lanes.values():
        for (service_class, _, _), places in lanes.items():
            counts[service_class] += number_of(places)
    return counts


def _view_replica(state: State, replica: Replica) -> ReplicaView:
    spec = replica.spec
    assert spec is not None, "only declared replicas are shown"
    return ReplicaView(
        name=replica.replica,
        kind=spec.kind,
        models=spec.models,
        engine=replica.engine,
        phase=_phase(state, replica),
        healthy=replica.healthy,
        in_flight=replica.in_flight,
        capacity=_turns_at_most(state, replica),
        kept=replica.kept,
        placed=replica.placed,
        load=replica.load,
        foreign=replica.foreign,
        why=replica.why,
        window=replica.window,
        tokens=None if state.limits.working_set is None else _view_seat(replica.seat),
    )


def _view_seat(seat: Seat) -> TokensView:
    return TokensView(in_flight=seat.in_flight, kept=seat.kept, capacity=seat.capacity, hits=round(seat.hits, 3))


def _turns_at_most(state: State, replica: Replica) -> int | None:
    if state.limits.working_set is None:
        return capacity(replica)
    return None if replica.window is None else replica.window.size


def _phase(state: State, replica: Replica) -> ReplicaPhase:
    if not replica.declared or replica.draining:
        return ReplicaPhase.LEAVING
    if not replica.healthy:
        return ReplicaPhase.DOWN if replica.seen_healthy else ReplicaPhase.STARTING
    if replica.closed_until is not None:
        return ReplicaPhase.FULL
    limit = _turns_at_most(state, replica)
    return ReplicaPhase.READY if limit is None or replica.in_flight < limit else ReplicaPhase.FULL


def _view_held(state: State, now: Instant) -> tuple[HeldView, ...]:
    """Tell a row for each of the first callers in line, class by class, and one for all who stand behind them."""
    rows: list[HeldView] = []
    for service_class in CLASSES_IN_ORDER:
        pools = [(bit, pool) for (each, pool), bit in state.queue_bits.items() if each is service_class]
        named: set[Lane] = set()
        for payer in state.lineup.in_order(sum(bit for bit, _ in pools)):
            lane = service_class, payer.principal, payer.caller
            queues = [state.lanes[pool][lane] for bit, pool in pools if bit & payer.queues]
            first = state.held[min(map(first_of, queues))[2]]
            if len(named) == HELD_ROWS_MAX:
                rows.append(_row(state, _queues_but(state, service_class, named), first, OTHER_CALLERS, now))
                break
            rows.append(_row(state, queues, first, payer.caller, now))
            named.add(lane)
    return tuple(rows)


def _queues_but(state: State, service_class: ServiceClass, named: set[Lane]) -> list[Places]:
    return [
        places
        for lanes in state.lanes.values()
        for lane, places in lanes.items()
        if lane[0] is service_class and lane not in named
    ]


def _row(state: State, queues: list[Places], first: HeldTurn, caller: CallerId, now: Instant) -> HeldView:
    """Tell of turns of one class; the one of them that goes first gives the reason."""
    return HeldView(
        service_class=first.arrival.service_class,
        caller=caller,
        count=sum(map(number_of, queues)),
        oldest_s=now - state.held[min(map(first_of, queues))[2]].arrived_at,
        reason=_reason(state, first, now),
    )


def _reason(state: State, head: HeldTurn, now: Instant) -> HoldReason:
    """Name what the first in line waits for; those behind it wait for the one in front, or all for their model."""
    of_model = why_model_held(state.residency, state.serving, head.arrival, now)
    if of_model is not None:
        return of_model
    ahead = state.lineup.first(state.queue_bits[head.queue])
    if ahead is not None and (ahead.principal, ahead.caller) != head.payer:
        return BehindCaller(caller=ahead.caller)
    if state.limits.working_set is not None:
        return why_it_waits(state.replicas, state.serving, state.held, head, state.limits)
    return why_held(head.pool, candidates(state.replicas, state.serving, head.pool), head.arrival)
