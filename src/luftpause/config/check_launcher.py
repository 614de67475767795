"""What no single key of the launcher can tell: what each backend needs, groups and devices that nobody declared."""

import re
from collections.abc import Iterator

from luftpause.config.faults import argv_faults, engine_url_faults, environment_faults, health_faults, repeats
from luftpause.config.launcher_schema import Launcher, LauncherModel
from luftpause.config.problems import KeyPath, shown
from luftpause.config.shape import Finding
from luftpause.config.units import seconds, size_bytes

_RAM = "ram"
_NEVER = "never"
_SEVERAL = (
    "several stay up until an operator unloads them; say persistent = true if that is meant, or have one engine that"
    ' takes several turns at once, for llama.cpp with args = ["--parallel", "4"]'
)
_WITH_FILE = ("llama.cpp", "vllm", "sglang")
_DURATIONS = (
    "adopt_within",
    "ttl",
    "min_residency",
    "max_wait",
    "unknown_tool",
    "soft_lease_max",
    "circuit",
    "circuit_max",
    "stable_after",
    "silent_after",
    "stop_grace",
    "memory_wait",
)
_HOST = re.compile(r"[A-Za-z0-9._:%-]+")


def check_launcher(launcher: Launcher) -> Iterator[Finding]:
    """Yield what cannot work."""
    if not _HOST.fullmatch(launcher.host):
        yield ("launcher", "host"), f"expected a host name or address, got {shown(launcher.host)}"
    yield from repeats(((("launcher", "groups", at, "name"), item.name) for at, item in enumerate(launcher.groups)))
    yield from repeats(((("launcher", "devices", at, "name"), item.name) for at, item in enumerate(launcher.devices)))
    for at, device in enumerate(launcher.devices):
        if device.name == _RAM:
            yield ("launcher", "devices", at, "name"), "'ram' is launcher.memory; name an accelerator"
    for at, model in enumerate(launcher.models):
        path: KeyPath = ("launcher", "models", at)
        yield from _needs(path, model)
        yield from _places(path, model, launcher)
        yield from health_faults((*path, "health"), model.health)
        yield from argv_faults((*path, "command"), model.command)
        yield from argv_faults((*path, "stop_command"), model.stop_command)
        yield from argv_faults((*path, "args"), model.args, may_be_empty=True)
        yield from environment_faults((*path, "env"), model.env)
    yield from _durations(launcher)
    yield from _sizes(launcher)


def _needs(path: KeyPath, model: LauncherModel) -> Iterator[Finding]:
    backend = model.backend
    if backend == "command" and not model.command:
        yield (*path, "command"), "is missing; backend 'command' needs the program and its arguments"
    if backend != "command" and model.command:
        yield (*path, "command"), f"belongs to backend 'command'; backend {shown(backend)} has a program of its own"
    if backend in _WITH_FILE and not model.model_path:
        yield (*path, "model_path"), f"is missing; backend {shown(backend)} needs the model's file"
    if backend == "ollama":
        yield from engine_url_faults((*path, "url"), model.url)
        for key in ("model_path", "args", "stop_command", "port", "env"):
            if getattr(model, key):
                yield (*path, key), "belongs to an engine that we start; Ollama is running already"
    yield from _several(path, model)


def _several(path: KeyPath, model: LauncherModel) -> Iterator[Finding]:
    if model.instances == 1:
        return
    if model.backend == "ollama":
        yield (*path, "instances"), "Ollama runs a model once; leave it out"
        return
    if model.port:
        yield (*path, "port"), f"{model.instances} instances cannot share port {model.port}; leave it out or use 0"
    if not model.persistent:
        yield (*path, "instances"), _SEVERAL
    elif model.ttl not in ("", _NEVER):
        yield (*path, "ttl"), "several instances stay up until an operator unloads them; leave it out"


def _places(path: KeyPath, model: LauncherModel, launcher: Launcher) -> Iterator[Finding]:
    if model.group and model.group not in {group.name for group in launcher.groups}:
        yield (*path, "group"), f"there is no [[launcher.groups]] named {shown(model.group)}"
    if model.device != _RAM and model.device not in {device.name for device in launcher.devices}:
        yield (*path, "device"), f"there is no [[launcher.devices]] named {shown(model.device)}"
    if model.pattern:
        try:
            re.compile(model.pattern)
        except re.error as error:
            yield (*path, "pattern"), f"is no regular expression: {error}"


def _durations(launcher: Launcher) -> Iterator[Finding]:
    durations: list[tuple[KeyPath, str, bool]] = [
        (("launcher", key), getattr(launcher, key), key != "circuit") for key in _DURATIONS
    ]
    for at, model in enumerate(launcher.models):
        path: KeyPath = ("launcher", "models", at)
        durations.append(((*path, "readiness_timeout"), model.readiness_timeout, False))
        durations.append(((*path, "ttl"), model.ttl, True))
    for path, text, may_be_zero in durations:
        if text in ("", _NEVER):
            continue
        try:
            if seconds(text) == 0 and not may_be_zero:
                yield path, "must be longer than zero"
        except ValueError as error:
            yield path, str(error)


def _sizes(launcher: Launcher) -> Iterator[Finding]:
    sizes: list[tuple[KeyPath, str]] = [(("launcher", "memory"), launcher.memory)]
    sizes.append((("launcher", "kv_parking_size"), launcher.kv_parking_size))
    sizes += [(("launcher", "devices", at, "memory"), item.memory) for at, item in enumerate(launcher.devices)]
    sizes += [(("launcher", "models", at, "memory"), item.memory) for at, item in enumerate(launcher.models)]
    for path, text in sizes:
        try:
            if text and size_bytes(text) == 0:
                yield path, "must be larger than zero"
        except ValueError as error:
            yield path, str(error)
