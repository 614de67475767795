"""The shape of `[launcher]` in `luftpause.toml`: engines that this machine starts."""

from typing import Annotated

from msgspec import Meta

from luftpause.config.value_types import (
    Backend,
    Duration,
    KvParking,
    Name,
    OptionalSize,
    OptionalTtl,
    Port,
    Section,
    Size,
    Ttl,
)


class LauncherModel(Section, frozen=True):
    """A model whose engine this machine starts when a turn asks for it.

    `command` and `stop_command` may contain ${port}, ${model} and ${python}; neither is ever given to a shell.
    An engine that speaks llama-server's `/slots` is told by ${slots} in `command` where to write them, and parks KV.

    Attributes:
        name: what clients ask for as `model`; unique.
        backend: what runs it: `llama.cpp`, `vllm`, `sglang`, a running `ollama`, or any other `command`.
        aliases: further names for the same model.
        pattern: a regular expression; a name that matches it whole means this model, after all exact names.
        model_path: the model's file or folder, inside `launcher.model_dir`; needed by `llama.cpp`, `vllm` and `sglang`.
        command: program and arguments of a `command` backend.
        stop_command: program and arguments that end the engine, for one that no signal reaches; a kill follows if not.
        args: further arguments at the end of the engine's command line.
        url: base URL of the Ollama that has the model.
        health: path whose 200 means ready.
        port: where the engine listens; 0 picks a free port, which several instances need.
        instances: how many engine processes serve this model; several stay up until an operator unloads them, so they
            need `persistent`. A model that comes and goes has one engine; that can take several turns at once.
        memory: what they are thought to take; the measured value replaces it. Empty: the file's size and a tenth.
        device: where they take it: `ram`, or a name of `[[launcher.devices]]`.
        group: the model's `[[launcher.groups]]`; empty: memory alone decides what stays beside it.
        ttl: unloaded this long after the last byte; empty: as `launcher.ttl` says.
        persistent: never unloaded to make room for others.
        pinned: not unloaded at all until `luftpause models unpin`.
        preload: loaded at the start instead of at the first turn.
        readiness_timeout: an engine that is not ready by then, or shows no progress for as long, has failed.
        env: variables added to the engine's environment.
    """

    name: Name
    backend: Backend
    aliases: list[Name] = []
    pattern: Annotated[str, Meta(max_length=256)] = ""
    model_path: str = ""
    command: list[str] = []
    stop_command: list[str] = []
    args: list[str] = []
    url: str = "http://127.0.0.1:11434"
    health: str = "/health"
    port: Port = 0
    instances: Annotated[int, Meta(ge=1, le=64)] = 1
    memory: OptionalSize = ""
    device: Name = "ram"
    group: str = ""
    ttl: OptionalTtl = ""
    persistent: bool = False
    pinned: bool = False
    preload: bool = False
    readiness_timeout: Duration = "5m"
    env: dict[str, str] = {}


def replica_names(model: LauncherModel) -> tuple[str, ...]:
    """Return what a model's engines are called among all replicas."""
    if model.backend == "ollama":
        return (f"{model.name}-ollama",)
    return tuple(f"{model.name}-{instance}" for instance in range(1, model.instances + 1))


class LauncherGroup(Section, frozen=True):
    """Models that share a rule beside the size of their memory.

    Attributes:
        name: what `group` of a model says.
        swap: one of its models at a time.
        exclusive: loading one of them unloads those of other groups.
        persistent: its models are never unloaded to make room for others.
    """

    name: Name
    swap: bool = True
    exclusive: bool = False
    persistent: bool = False


class LauncherDevice(Section, frozen=True):
    """An accelerator whose memory engines take.

    Attributes:
        name: what `device` of a model says.
        memory: what all engines on it may have together.
    """

    name: Name
    memory: Size


class Launcher(Section, frozen=True):
    """Engines on demand. Naming a model here is the opt-in.

    Attributes:
        name: what this launcher is called; another machine's needs another name.
        host: address that engines listen on and are reached at; another machine reaches them only with a key.
        api_key_env: environment variable with the key that engines are started with and asked with, here and where a
            dataplane runs; needed where `host` is not this machine's own. A `command` finds it under the same name.
        model_dir: folder of the model files; relative to the working directory.
        log_dir: folder for the engines' own output; empty means no files.
        state_dir: folder of the marks by which engines of a launcher that was killed are found again, and of what
            `kv_parking` keeps.
        adopt: engines outlive a launcher that is killed, and the next one keeps those that are healthy and were started
            just as it would start them now, so that nothing is loaded twice; false: they end with it.
        adopt_within: engines that no launcher adopted are ended this long after theirs was killed.
        memory: RAM that all engines together may take; empty: this machine's, less a tenth.
        ttl: a model is unloaded this long after the last byte of its last turn.
        unload_at_tree_end: unload a model as soon as a tree of runs ends and nobody else uses it.
        auto_restart: start an engine that crashed again by itself, 2, 4 and 8 seconds later, then no more.
        min_residency: a model that was loaded stays at least this long, whoever waits for its room.
        max_wait: turns for a model that is up go before those for one that is not, for at most this long.
        unknown_tool: a run that is out on a tool of which nothing is known is expected back after so long.
        soft_lease_max: a run that is out on a tool keeps its model up for so long at most.
        circuit_after: a model is left alone for a while after so many failures in a row.
        circuit: for how long the first time, then for twice as long each time.
        circuit_max: but for no longer.
        stable_after: a crash counts as the first one in a row when the model was up for so long.
        silent_after: an engine that failed its health probes for so long is ended and started anew for turns that wait,
            if none is in flight; and under any turn if it did no work either (Linux): it hung, which counts as a crash.
        stop_grace: how long an engine may take to end by itself before it is killed.
        memory_wait: memory that an engine held is waited for so long before the next one is started.
        kv_parking: `auto`: what a run that will return has computed is kept in a file while its model is down, where
            that is quicker than to compute it again (llama.cpp); `off`: never. Files lie in `state_dir`, readable for
            us alone, and go with their run, at the latest at the next start.
        kv_parking_size: what all these files may take together; those that are worth least go.
        devices: accelerators, as `[[launcher.devices]]`.
        groups: rules that models share, as `[[launcher.groups]]`.
        models: the models, as `[[launcher.models]]`.
    """

    name: Name = "local"
    host: str = "127.0.0.1"
    api_key_env: str = ""
    model_dir: str = "models"
    log_dir: str = ""
    state_dir: str = "state/launcher"
    adopt: bool = True
    adopt_within: Duration = "2m"
    memory: OptionalSize = ""
    ttl: Ttl = "10m"
    unload_at_tree_end: bool = False
    auto_restart: bool = False
    min_residency: Duration = "5s"
    max_wait: Duration = "30s"
    unknown_tool: Duration = "30s"
    soft_lease_max: Duration = "5m"
    circuit_after: Annotated[int, Meta(ge=1, le=100)] = 3
    circuit: Duration = "2s"
    circuit_max: Duration = "5m"
    stable_after: Duration = "1m"
    silent_after: Duration = "30s"
    stop_grace: Duration = "10s"
    memory_wait: Duration = "5s"
    kv_parking: KvParking = "auto"
    kv_parking_size: Size = "4GiB"
    devices: list[LauncherDevice] = []
    groups: list[LauncherGroup] = []
    models: list[LauncherModel] = []
