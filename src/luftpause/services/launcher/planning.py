"""The catalogue, worked out from `[launcher]` before anything runs: what can be started, and what others are told.

It looks at files, but starts nothing.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from luftpause.config.launcher_schema import Launcher, LauncherModel, replica_names
from luftpause.config.problems import ConfigError, Problem, dotted
from luftpause.config.units import seconds, size_bytes
from luftpause.core.model.ids import DeviceId, LauncherId, ModelName, ReplicaId
from luftpause.core.model.models import RAM, Device, ModelGroup, ModelSpec
from luftpause.core.model.replicas import Endpoint, EngineKind
from luftpause.core.processes.state import BACKOFF_S
from luftpause.ports.processes import Launch, LocalEngine
from luftpause.services.launcher.command_lines import (
    SLOTS_PLACEHOLDER,
    CommandLine,
    Place,
    command_line,
    key_variables,
    parks,
    stop_command_line,
    with_port,
)
from luftpause.services.launcher.engine_arguments import UnusableError
from luftpause.services.launcher.model_files import ModelFile, model_file

LOCAL: Final = LauncherId("local")
_NEVER: Final = "never"
_OVERHEAD: Final = 1.1
"""A loaded model takes more than its file: so much is thought until it was measured."""
_KINDS: Final[Mapping[str, EngineKind]] = {
    "llama.cpp": EngineKind.LLAMA_CPP,
    "vllm": EngineKind.VLLM,
    "sglang": EngineKind.SGLANG,
    "ollama": EngineKind.OLLAMA,
    "command": EngineKind.AUTO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePlan:
    """One engine process that can be started.

    Attributes:
        replica: `<model>-<instance>`.
        models: the model's name and its aliases.
        instance: 1 to `instances`.
        argv: program and arguments, with `${port}` where the port belongs.
        stop_argv: what ends it instead of a signal; empty: signals do.
        port: 0 takes a free one at each start.
        host: the address that it listens on and is reached at.
        files: those of ours that it opens, the model's first; each is looked at again before each start.
        parks: whether its slots can be saved to files.
        device: where it takes its memory.
        memory: what one such process is thought to take there, bytes; 0: nobody knows.
        api_key_env: the variable with the key that it wants to hear; empty: none.
        silent_s: it has hung when it answered no probe for so long, and did no work, seconds; None: nobody looks.
    """

    replica: ReplicaId
    models: tuple[ModelName, ...]
    instance: int
    instances: int
    argv: tuple[str, ...]
    stop_argv: tuple[str, ...] = ()
    port: int
    host: str = "127.0.0.1"
    env: Mapping[str, str]
    health: str
    engine: EngineKind
    readiness_timeout_s: float
    files: tuple[ModelFile, ...] = ()
    parks: bool = False
    device: DeviceId = RAM
    memory: int = 0
    api_key_env: str = ""
    silent_s: float | None = None

    def endpoint_at(self, port: int) -> Endpoint:
        """Return where it is asked when it listens on a port."""
        return Endpoint(url=f"http://{self.host}:{port}", api_key_env=self.api_key_env)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """One model of the catalogue.

    Attributes:
        spec: what the scheduler is told.
        engines: the processes that serve it; none for a model of a running Ollama.
        ollama_url: where that is; empty for all others.
    """

    spec: ModelSpec
    engines: tuple[EnginePlan, ...] = ()
    ollama_url: str = ""

    @property
    def backoff_s(self) -> tuple[float, ...]:
        """The pauses before restarts of its engines.

        One engine of several that fails comes back by itself while others serve; of a single one, the scheduler says
        whether it does.
        """
        return BACKOFF_S if self.spec.auto_restart and len(self.engines) > 1 else ()

    def stamp(self) -> str:
        """Return what differs once a file of it is another one; empty where it opens none of ours."""
        return "\n".join(file.stamp() for file in self.engines[0].files) if self.engines else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherPlan:
    """All that a launcher can start.

    Attributes:
        stop_grace_s: what each engine may take to end before it is killed, seconds.
        memory_wait_s: how long the memory of one that ended is waited for, seconds.
        parking: what all files with runs' KV may take together, bytes; 0: none is kept.
    """

    launcher: LauncherId = LOCAL
    devices: tuple[Device, ...] = ()
    models: tuple[ModelPlan, ...] = ()
    stop_grace_s: float
    memory_wait_s: float = 5.0
    parking: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What there is on this machine.

    Attributes:
        engine: its llama.cpp server; None when it has none.
        bundled_model: the one model file that may lie outside `launcher.model_dir`; None when there is none.
        ram: what engines may have of its memory when the config does not say, bytes.
        kv_folder: where engines write the KV of runs; None: nowhere.
        engine_key: what engines want to hear; empty: nothing.
    """

    engine: LocalEngine | None
    bundled_model: Path | None
    ram: int
    kv_folder: Path | None = None
    engine_key: str = field(default="", repr=False)


def launch_of(engine: EnginePlan, port: int) -> Launch:
    """Return how an engine is started that is to listen on a port."""
    argv = with_port(engine.argv, port)
    return Launch(name=engine.replica, argv=argv, port=port, host=engine.host, env=engine.env)


def plan(launcher: Launcher, machine: Machine) -> LauncherPlan:
    """Return what can be started.

    Raises:
        ConfigError: some model cannot be started as it stands; all problems at once.
    """
    models: list[ModelPlan] = []
    problems: list[Problem] = []
    for at, model in enumerate(launcher.models):
        try:
            models.append(_model_plan(launcher, model, machine))
        except UnusableError as error:
            key = dotted(("launcher", "models", at, error.key))
            problems.append(Problem(where="launcher", key=key, what=error.what))
    if problems:
        raise ConfigError(*problems)
    ram = size_bytes(launcher.memory) if launcher.memory else machine.ram
    return LauncherPlan(
        launcher=LauncherId(launcher.name),
        devices=(
            Device(device=RAM, memory=ram),
            *(Device(device=DeviceId(each.name), memory=size_bytes(each.memory)) for each in launcher.devices),
        ),
        models=tuple(models),
        stop_grace_s=seconds(launcher.stop_grace),
        memory_wait_s=seconds(launcher.memory_wait),
        parking=size_bytes(launcher.kv_parking_size) if _kv_folder(launcher, machine) is not None else 0,
    )


def _model_plan(launcher: Launcher, model: LauncherModel, machine: Machine) -> ModelPlan:
    file = model_file(model.model_path, launcher.model_dir, machine.bundled_model)
    fault = file.fault() if file is not None else ""
    if fault:
        raise UnusableError("model_path", fault)
    kv_folder = _kv_folder(launcher, machine) if model.instances == 1 else None
    place = Place(launcher.host, launcher.model_dir, kv_folder, machine.engine_key)
    line = command_line(model, file.path if file else None, machine.engine, place)
    memory = size_bytes(model.memory) if model.memory else _guess(model, file)
    engines = tuple(_instances(launcher, model, line, file, machine)) if line.argv else ()
    return ModelPlan(
        spec=_spec(launcher, model, memory, build=_build(model, line.argv, kv_folder)),
        engines=engines,
        ollama_url="" if line.argv else model.url.rstrip("/"),
    )


def _kv_folder(launcher: Launcher, machine: Machine) -> Path | None:
    return machine.kv_folder if launcher.kv_parking == "auto" else None


def _spec(launcher: Launcher, model: LauncherModel, memory: int, *, build: str) -> ModelSpec:
    groups = {
        each.name: ModelGroup(name=each.name, swap=each.swap, exclusive=each.exclusive, persistent=each.persistent)
        for each in launcher.groups
    }
    ttl = model.ttl or launcher.ttl
    # Of several engines the scheduler knows one as the model's: whether the others are idle, it does not ask.
    stays = model.instances > 1
    return ModelSpec(
        model=ModelName(model.name),
        aliases=tuple(ModelName(alias) for alias in model.aliases),
        pattern=model.pattern,
        memory=memory,
        device=DeviceId(model.device),
        group=groups.get(model.group),
        ttl_s=None if ttl == _NEVER or stays else seconds(ttl),
        persistent=model.persistent or stays,
        pinned=model.pinned,
        preload=model.preload,
        unload_at_tree_end=launcher.unload_at_tree_end and not stays,
        auto_restart=launcher.auto_restart,
        build=build,
    )


def _instances(
    launcher: Launcher, model: LauncherModel, line: CommandLine, file: ModelFile | None, machine: Machine
) -> Iterable[EnginePlan]:
    own_env = machine.engine.env if machine.engine and model.backend == "llama.cpp" else {}
    memory = size_bytes(model.memory) if model.memory else _guess(model, file)
    for instance, name in enumerate(replica_names(model), 1):
        yield EnginePlan(
            replica=ReplicaId(name),
            models=tuple(ModelName(name) for name in (model.name, *model.aliases)),
            instance=instance,
            instances=model.instances,
            argv=line.argv,
            stop_argv=stop_command_line(model, file.path if file else None),
            port=model.port,
            host=launcher.host,
            env={**own_env, **model.env, **key_variables(model, launcher.api_key_env, machine.engine_key)},
            health=model.health,
            engine=_KINDS[model.backend],
            readiness_timeout_s=seconds(model.readiness_timeout),
            files=(*((file,) if file is not None else ()), *line.files),
            parks=parks(model, _kv_folder(launcher, machine) if model.instances == 1 else None),
            device=DeviceId(model.device),
            memory=memory // model.instances,
            api_key_env=launcher.api_key_env,
            silent_s=seconds(launcher.silent_after),
        )


def _guess(model: LauncherModel, file: ModelFile | None) -> int:
    return int((file.size_bytes() if file is not None else 0) * _OVERHEAD) * model.instances


def _build(model: LauncherModel, argv: tuple[str, ...], kv_folder: Path | None) -> str:
    """Return what differs whenever an engine would be started otherwise, but for which folder its KV goes to."""
    if kv_folder is not None:
        argv = tuple(word.replace(str(kv_folder), SLOTS_PLACEHOLDER) for word in argv)
    started = (argv, model.stop_command, model.port, model.instances, model.env, model.health, model.url, model.device)
    return hashlib.sha256(msgspec.json.encode(started)).hexdigest()[:16]
