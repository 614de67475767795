"""Short ways to say what launchers report in tests: memory in GiB, so that what is guessed of it is of a size too."""

from dataclasses import replace

from luftpause.core.model.ids import DeviceId, KvFile, LauncherId, ModelName, ReplicaId
from luftpause.core.model.models import RAM, Device, EnginePhase, HeldEngine, ModelGroup, ModelSpec
from luftpause.core.model.parked_kv import SavedKv
from luftpause.core.model.replicas import Endpoint, ReplicaKind, ReplicaSpec
from luftpause.core.scheduling.residency.events import (
    LauncherJoined,
    LoadFailed,
    ModelDown,
    ModelUp,
    UnloadAsked,
)

GIB = 1 << 30


def model(
    name: str,
    memory: float = 1,
    *marks: str,
    load: float | None = 2.0,
    ttl: float | None = None,
    group: ModelGroup | None = None,
    device: str = RAM,
    aliases: tuple[str, ...] = (),
    pattern: str = "",
    kind: ReplicaKind = ReplicaKind.GENERATIVE,
    build: str = "",
) -> ModelSpec:
    """Declare a model. `marks`: persistent, pinned, preload, unload_at_tree_end, auto_restart."""
    return ModelSpec(
        model=ModelName(name),
        aliases=tuple(map(ModelName, aliases)),
        pattern=pattern,
        kind=kind,
        memory=int(memory * GIB),
        device=DeviceId(device),
        group=group,
        ttl_s=ttl,
        load_s=load,
        build=build,
        persistent="persistent" in marks,
        pinned="pinned" in marks,
        preload="preload" in marks,
        unload_at_tree_end="unload_at_tree_end" in marks,
        auto_restart="auto_restart" in marks,
    )


def joined(
    *catalogue: ModelSpec,
    launcher: str = "box",
    ram: float = 10,
    engines: tuple[HeldEngine, ...] = (),
    parking: int = 0,
    kv: tuple[SavedKv, ...] = (),
) -> LauncherJoined:
    """Let a launcher join with so much memory, and so many bytes for files with KV."""
    devices = (Device(device=RAM, memory=int(ram * GIB)),)
    return LauncherJoined(
        launcher=LauncherId(launcher), devices=devices, catalogue=catalogue, engines=engines, parking=parking, kv=kv
    )


def ending(*engines: HeldEngine) -> LauncherJoined:
    """Let the launcher `box` say that it ends, with what it still has."""
    return replace(joined(engines=engines), is_ending=True)


def replica_of(name: str, replica: str = "") -> ReplicaSpec:
    """Declare what a model answers as: `box/` and its name."""
    named = ReplicaId(replica or f"box/{name}")
    return ReplicaSpec(replica=named, endpoint=Endpoint(url=f"http://{name}.invalid"), models=(ModelName(name),))


def up(name: str, memory: float = 0, replica: str = "", slots: int = 0) -> ModelUp:
    """Say that a model is ready, with what it was measured to take."""
    return ModelUp(model=ModelName(name), replica=replica_of(name, replica), memory=int(memory * GIB), slots=slots)


def down(name: str, why: str = "", kv: tuple[SavedKv, ...] = (), prefill_s: float = 0.0) -> ModelDown:
    """Say that a model is gone."""
    return ModelDown(model=ModelName(name), why=why, kv=kv, prefill_s=prefill_s)


def saved(file: int, tokens: int = 1000, size: int = 1000, took_s: float = 0.0) -> SavedKv:
    """Tell of a file with KV."""
    return SavedKv(file=KvFile(file), tokens=tokens, size=size, took_s=took_s)


def load_failed(name: str, cause: str = "exit status 1", *tail: str, oom: bool = False) -> LoadFailed:
    """Say that a load failed."""
    return LoadFailed(model=ModelName(name), cause=cause, tail=tail, out_of_memory=oom)


def unload_asked(name: str, *, firmly: bool = False, keep: bool = False) -> UnloadAsked:
    """Ask for a model to go."""
    return UnloadAsked(model=ModelName(name), firmly=firmly, keep_waiting=keep)


def engine(
    name: str, phase: EnginePhase = EnginePhase.UP, *, memory: float = 0, build: str = "", slots: int = 0
) -> HeldEngine:
    """Tell of an engine that a launcher has."""
    told = replica_of(name) if phase is EnginePhase.UP else None
    held = int(memory * GIB)
    return HeldEngine(model=ModelName(name), phase=phase, replica=told, memory=held, build=build, slots=slots)
