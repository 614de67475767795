"""Models and memories as people and programs see them."""

from dataclasses import dataclass
from operator import attrgetter

from luftpause.core.model.ids import DeviceId, Instant, LauncherId, ModelName, ReplicaId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.residency.holding import eta_s
from luftpause.core.scheduling.residency.reasons import explain_blocked, explain_unload
from luftpause.core.scheduling.residency.state import NOBODY, Model, ModelPhase
from luftpause.core.scheduling.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """One model of a launcher. Times in seconds, memory in bytes.

    Attributes:
        replica: what it answers as while it is up; None else.
        in_flight: its turns in flight: none of them is cut for another model.
        waiting: turns held here for it.
        expected: runs that are out on a tool and will come back to it.
        memory: measured, or else estimated.
        slots: of its engine, as far as runs are kept on theirs; 0: none.
        parked: runs whose KV is kept in files.
        parked_size: of these files, bytes.
        ttl_left_s: until it is unloaded for being idle, if nothing comes and nobody is expected; None where that does
            not count now.
        eta_s: until its load is thought to be over; None while it is not loading.
        retry_after_s: for how long it is left alone because it failed too often; None while it is not.
        why: why it is in its phase or has not left it, as a sentence without its full stop; may be empty.
    """

    name: ModelName
    launcher: LauncherId
    connected: bool
    kind: ReplicaKind
    phase: ModelPhase
    since_s: float
    replica: ReplicaId | None
    in_flight: int
    waiting: int
    expected: int
    device: DeviceId
    memory: int
    is_measured: bool
    slots: int
    parked: int
    parked_size: int
    load_s: float
    pinned: bool
    persistent: bool
    ttl_left_s: float | None
    eta_s: float | None
    retry_after_s: float | None
    failures: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """A memory of a launcher, bytes. `taken`: by engines that are loading, up, or not gone yet."""

    launcher: LauncherId
    device: DeviceId
    budget: int
    taken: int


def view_models(state: State, now: Instant) -> tuple[ModelView, ...]:
    """Return all models in order of declaration."""
    return tuple(_view(state, model, now) for model in sorted(state.residency.models.values(), key=attrgetter("order")))


def view_devices(state: State) -> tuple[DeviceView, ...]:
    """Return all memories of all launchers, by name."""
    residency = state.residency
    taken: dict[tuple[LauncherId, DeviceId], int] = {}
    for model in residency.models.values():
        if model.phase is not ModelPhase.DOWN:
            where = model.launcher, model.spec.device
            taken[where] = taken.get(where, 0) + model.memory
    return tuple(
        DeviceView(launcher=name, device=device, budget=budget, taken=taken.get((name, device), 0))
        for name, launcher in sorted(residency.launchers.items())
        for device, budget in sorted(launcher.devices.items())
    )


def _view(state: State, model: Model, now: Instant) -> ModelView:
    residency = state.residency
    in_flight = 0 if model.replica is None else state.replicas[model.replica].in_flight
    waiting = residency.waiting.get(model.name, NOBODY).number
    closed_until = model.closed_until
    is_closed = model.phase is ModelPhase.DOWN and closed_until is not None and closed_until > now
    is_idle = model.phase is ModelPhase.UP and not in_flight and not waiting and not model.pinned
    ttl_s = model.spec.ttl_s
    parked = sorted(residency.parked.get(model.name, {}).items())
    return ModelView(
        name=model.name,
        launcher=model.launcher,
        connected=residency.launchers[model.launcher].connected,
        kind=model.spec.kind,
        phase=model.phase,
        since_s=max(0.0, now - model.since),
        replica=model.replica,
        in_flight=in_flight,
        waiting=waiting,
        expected=sum(residency.paused.get(model.name, {}).values()),
        device=model.spec.device,
        memory=model.memory,
        is_measured=model.is_measured,
        slots=len(residency.slots.get(model.name, ())),
        parked=len(parked),
        parked_size=sum(each.size for _, each in parked),
        load_s=model.load_s,
        pinned=model.pinned,
        persistent=model.spec.stays_for_others,
        ttl_left_s=max(0.0, model.used_at + ttl_s - now) if is_idle and ttl_s is not None else None,
        eta_s=eta_s(model, now) if model.phase is ModelPhase.LOADING else None,
        retry_after_s=closed_until - now if is_closed and closed_until is not None else None,
        failures=model.failures,
        why=_why(model),
    )


def _why(model: Model) -> str:
    match model.phase:
        case ModelPhase.LOADING:
            return "" if model.load_why is None else model.load_why.value
        case ModelPhase.DRAINING | ModelPhase.STOPPING:
            return "" if model.unload_why is None else explain_unload(model.unload_why)
        case ModelPhase.DOWN:
            return model.failed_why if model.blocked is None else explain_blocked(model.blocked)
        case _:
            return ""
