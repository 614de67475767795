"""A launcher comes, comes back, reads its settings anew, or is lost: what it has is set against what was thought."""

from dataclasses import replace
from typing import Final

from immutables import Map

from luftpause.core.model.ids import Instant, LauncherId, ModelName
from luftpause.core.model.models import EnginePhase, HeldEngine, ModelSpec
from luftpause.core.scheduling.ages import AGE_S_MAX
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.residency import parking, steps
from luftpause.core.scheduling.residency.events import LauncherJoined, ModelUp
from luftpause.core.scheduling.residency.kv_state import KvCosts
from luftpause.core.scheduling.residency.reasons import LoadReason, UnloadReason, UnloadWhy
from luftpause.core.scheduling.residency.state import Launcher, Model, ModelPhase
from luftpause.core.scheduling.residency.uses import counted
from luftpause.core.scheduling.turns import unknown_model

LOAD_S: Final = 5.0
LOAD_BYTES_PER_S: Final = 1 << 30
"""How long a load is thought to take before one was seen: so long, and its memory read at this rate."""


def join(draft: Draft, event: LauncherJoined, now: Instant) -> None:
    """Take in all that a launcher tells."""
    name = event.launcher
    devices = Map({device.device: max(0, device.memory) for device in event.devices})
    parking_max = max(0, event.parking)
    launcher = Launcher(connected=True, devices=devices, parking=parking_max, is_ending=event.is_ending)
    launchers = draft.residency.launchers.set(name, launcher)
    draft.residency = draft.residency._replace(launchers=launchers)
    engines = {engine.model: engine for engine in event.engines}
    declared = {spec.model: spec for spec in event.catalogue if not _is_anothers(draft, spec.model, name)}
    strays = {each: ModelSpec(model=each, memory=engines[each].memory) for each in engines if each not in declared}
    fresh = [spec.model for spec in declared.values() if _declare(draft, spec, name, now)]
    for model in sorted(_of(draft, name), key=lambda model: model.order):
        if model.name not in declared:
            steps.put(draft, model._replace(is_dropped=True, asked=None))
    for stray in strays.values():
        if stray.model not in draft.residency.models:
            _declare(draft, stray, name, now)
            model = draft.residency.models[stray.model]
            steps.put(draft, model._replace(is_dropped=True, asked=None))
            fresh.append(stray.model)
    if fresh:
        draft.residency = counted(draft.residency, fresh, draft.held.values(), draft.runs.values())
    for model in sorted(_of(draft, name), key=lambda model: model.order):
        _reconcile(draft, model, engines.get(model.name), now)
    parking.reconcile(draft, name, event.kv, now)


def lose(draft: Draft, launcher: LauncherId) -> None:
    """Note that a launcher takes no orders until it is back; an unknown one changes nothing."""
    known = draft.residency.launchers.get(launcher)
    if known is None:
        return
    launchers = draft.residency.launchers.set(launcher, known._replace(connected=False))
    draft.residency = draft.residency._replace(launchers=launchers)
    for model in sorted(_of(draft, launcher), key=lambda model: model.order):
        steps.end_charge(draft, model)


def _of(draft: Draft, launcher: LauncherId) -> list[Model]:
    return [model for model in draft.residency.models.values() if model.launcher == launcher]


def _is_anothers(draft: Draft, name: ModelName, launcher: LauncherId) -> bool:
    """Say whether another launcher has a model: while it is connected, or runs it."""
    model = draft.residency.models.get(name)
    if model is None or model.launcher == launcher:
        return False
    return draft.residency.launchers[model.launcher].connected or model.phase is not ModelPhase.DOWN


def _declare(draft: Draft, told: ModelSpec, launcher: LauncherId, now: Instant) -> bool:
    """Put a model into the catalogue, or new settings in place of the old; say whether its users must be counted."""
    spec = _sane(told)
    known = draft.residency.models.get(spec.model)
    changes_kind = known is not None and known.spec.kind is not spec.kind
    if known is not None and changes_kind:
        _leave_kind(draft, known, now)
        known = draft.residency.models[spec.model]
    guess_s = spec.load_s if spec.load_s is not None else LOAD_S + spec.memory / LOAD_BYTES_PER_S
    if known is None or known.launcher != launcher:
        if known is not None:
            parking.drop_all(draft, known)
        fresh = Model(
            spec=spec,
            launcher=launcher,
            order=draft.take_seq(),
            memory=spec.memory,
            load_s=guess_s,
            since=now,
            asked=LoadReason.PRELOAD if spec.preload else None,
            pinned=spec.pinned,
            build=spec.build,
        )
        steps.put(draft, fresh)
        return known is None or changes_kind
    changed = known._replace(spec=spec, is_dropped=False, load_s=known.load_s if known.is_timed else guess_s)
    if known.spec.pinned is not spec.pinned:
        changed = changed._replace(pinned=spec.pinned)
    if known.spec.build != spec.build:  # what was learned of the old settings says nothing of the new ones
        forgotten = changed._replace(failures=0, crashes=0, failed_why="", closed_until=None)
        changed = forgotten._replace(is_retrying=False, kv=KvCosts())
        if known.phase is ModelPhase.DOWN:
            changed = changed._replace(is_measured=False, is_timed=False, load_s=guess_s)
    if known.phase is ModelPhase.DOWN and not changed.is_measured and not changed.is_retrying:
        changed = changed._replace(memory=spec.memory)
    steps.put(draft, changed)
    return changes_kind


def _leave_kind(draft: Draft, model: Model, now: Instant) -> None:
    """Let a model be of another kind from now on: turns of the old one are for nobody."""
    if model.is_serving or model.phase is ModelPhase.LOADING:
        steps.stop(draft, model, UnloadWhy(reason=UnloadReason.CHANGED), now)
    steps.refuse_waiters(draft, model, unknown_model(draft, model.spec.kind, model.name), now)
    residency = draft.residency
    waiting = residency.waiting.delete(model.name) if model.name in residency.waiting else residency.waiting
    paused = residency.paused.delete(model.name) if model.name in residency.paused else residency.paused
    draft.residency = residency._replace(waiting=waiting, paused=paused)


def _sane(spec: ModelSpec) -> ModelSpec:
    """Return a catalogue entry with figures that mean something."""
    ttl_s = spec.ttl_s if spec.ttl_s is not None and 0.0 <= spec.ttl_s <= AGE_S_MAX else None
    load_s = spec.load_s if spec.load_s is not None and 0.0 <= spec.load_s <= AGE_S_MAX else None
    memory = max(0, spec.memory)
    if (ttl_s, load_s, memory) == (spec.ttl_s, spec.load_s, spec.memory):
        return spec
    return replace(spec, ttl_s=ttl_s, load_s=load_s, memory=memory)


def _reconcile(draft: Draft, model: Model, engine: HeldEngine | None, now: Instant) -> None:
    """Set what is thought of one model right by what its launcher has."""
    if engine is None:
        if model.phase is not ModelPhase.DOWN or model.is_dropped:
            steps.gone(draft, model, now)
        return
    model = steps.put(draft, model._replace(build=engine.build))
    phase = engine.phase if engine.replica is not None or engine.phase is not EnginePhase.UP else EnginePhase.LOADING
    if model.phase is ModelPhase.STOPPING:
        if phase is not EnginePhase.STOPPING:  # the order went with the link
            steps.stop(draft, model, model.unload_why or _ASKED, now)
    elif phase is EnginePhase.STOPPING:
        model = steps.undeclare(draft, model, now)
        steps.put(draft, model._replace(phase=ModelPhase.STOPPING, since=now, unload_why=_ASKED))
    elif engine.replica is not None and phase is EnginePhase.UP:
        told = ModelUp(model=model.name, replica=engine.replica, memory=engine.memory, slots=engine.slots)
        steps.come_up(draft, model, told, now)
    elif model.phase is not ModelPhase.LOADING:
        model = steps.undeclare(draft, model, now)
        steps.put(draft, model._replace(phase=ModelPhase.LOADING, since=now, load_why=None, fraction=0.0))


_ASKED: Final = UnloadWhy(reason=UnloadReason.ASKED)
