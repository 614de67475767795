"""The scheduler's state as programs see it, section by section; docs/status.schema.json describes it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.caller_view import CallerView, view_callers
from luftpause.core.scheduling.reasons import explain
from luftpause.core.scheduling.state import State, Window
from luftpause.core.scheduling.view import HeldView, ReplicaView, RunsView, ToolView, view
from luftpause.ports.scheduler import PeerSeen
from luftpause.services.scheduler.family_rows import FamilyRows
from luftpause.services.scheduler.models_json import Json, device_json, model_json
from luftpause.services.scheduler.pace import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One moment: the state, and what was learned by watching. States never change, so a thread may look at one.

    Attributes:
        peers: who holds the scheduler over the link.
        pace: for guesses at how long held turns wait still.
        families: parents and their runs.
    """

    state: State
    now: Instant
    peers: Sequence[PeerSeen]
    pace: Pace
    families: FamilyRows


def sections(seen: Seen) -> dict[str, list[Json]]:
    """Return what is shown, as lists of rows."""
    state, now = seen.state, seen.now
    shown = view(state, now)
    waits = seen.pace.expected_s(shown.held, now)
    return {
        "replicas": [_replica(replica) for replica in shown.replicas],
        "held": [_held(held, wait_s) for held, wait_s in zip(shown.held, waits, strict=True)],
        "runs": [_runs(runs) for runs in shown.runs],
        "callers": [_caller(caller) for caller in view_callers(state)],
        "tools": [_tool(tool) for tool in shown.tools],
        "families": seen.families.rows(state, now),
        "peers": _peers(seen.peers, state),
        "models": [model_json(model) for model in shown.models],
        "devices": [device_json(device) for device in shown.devices],
    }


def _replica(replica: ReplicaView) -> Json:
    load = replica.load
    return {
        "name": replica.name,
        "kind": replica.kind.value,
        "models": list(replica.models),
        "engine": replica.engine.value,
        "healthy": replica.healthy,
        "state": replica.phase.value,
        "in_flight": replica.in_flight,
        "capacity": replica.capacity,
        "window": None if replica.window is None else _window(replica.window),
        "kept_for_paused": replica.kept,
        "turns_placed": replica.placed,
        "why": replica.why,
        "load": None if load is None else {"running": load.running, "waiting": load.waiting},
        "foreign": replica.foreign,
        "tokens": None if replica.tokens is None else asdict(replica.tokens),
    }


def _window(window: Window) -> Json:
    return {"turns": window.size, "after": "outage" if window.refused_at is None else "refusal"}


def _held(held: HeldView, expected_s: float | None) -> Json:
    return {
        "class": held.service_class.value,
        "caller": held.caller,
        "count": held.count,
        "oldest_s": round(max(0.0, held.oldest_s), 3),
        "expected_s": None if expected_s is None else round(expected_s, 1),
        "reason": explain(held.reason),
    }


def _runs(runs: RunsView) -> Json:
    return {"phase": runs.phase.value, "class": runs.service_class.value, "count": runs.count}


def _caller(caller: CallerView) -> Json:
    return {
        "principal": caller.principal,
        "caller": caller.caller,
        "in_flight": caller.in_flight,
        "held": caller.held,
    }


def _tool(tool: ToolView) -> Json:
    return {
        "server": tool.server,
        "tool": tool.tool,
        "returned": tool.returned,
        "running": tool.running,
        "p50_s": round(tool.p50_s, 3),
        "p90_s": round(tool.p90_s, 3),
        "expected_return_s": round(tool.expected_return_s, 3),
    }


def _peers(peers: Sequence[PeerSeen], state: State) -> list[Json]:
    open_turns = Counter(each.arrival.peer for each in (*state.turns.values(), *state.held.values()))
    return [{"name": seen.peer, "connected": seen.is_connected, "open_turns": open_turns[seen.peer]} for seen in peers]
