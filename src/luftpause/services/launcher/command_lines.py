"""The command line of each kind of engine.

Starts nothing. How a llama.cpp server is called here, it is told.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, assert_never

from luftpause.config.launcher_schema import LauncherModel
from luftpause.config.problems import shown
from luftpause.ports.processes import LocalEngine
from luftpause.services.launcher.engine_arguments import UnusableError, engine_arguments
from luftpause.services.launcher.model_files import ModelFile

PORT_PLACEHOLDER: Final = "${port}"
SLOTS_PLACEHOLDER: Final = "${slots}"
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")


class Place(NamedTuple):
    """Where an engine listens, where files must lie, where it writes the KV of its slots (None: nowhere), its key."""

    host: str
    model_dir: str
    kv_folder: Path | None = None
    key: str = ""


class CommandLine(NamedTuple):
    """Program and arguments, with `${port}` where the port belongs, and the files that the arguments name.

    Empty for a backend that is not started.
    """

    argv: tuple[str, ...] = ()
    files: tuple[ModelFile, ...] = ()


def command_line(model: LauncherModel, file: Path | None, engine: LocalEngine | None, where: Place) -> CommandLine:
    """Return how a model's engine is started. `file`: the model's; `engine`: what runs GGUF files here, if anything.

    Raises:
        UnusableError: it cannot be started as it stands.
    """
    known = _known(model, file, where.kv_folder)
    given = engine_arguments(model, [_filled(word, known, "args") for word in model.args], where.model_dir)
    return CommandLine(_argv(model, file, engine, where, given.words), given.files)


def _argv(
    model: LauncherModel, file: Path | None, engine: LocalEngine | None, where: Place, args: Sequence[str]
) -> tuple[str, ...]:
    host, kv_folder = where.host, where.kv_folder
    match model.backend:
        case "llama.cpp":
            if engine is None:
                what = "no llama.cpp server was found: put llama-server on PATH, or install luftpause[local]"
                raise UnusableError("backend", what)
            if kv_folder is not None:
                args = ["--slot-save-path", str(kv_folder), *args]
            if file is not None and file.is_dir():
                raise UnusableError("model_path", f"{shown(file.name)} is a folder; llama.cpp opens a GGUF file")
            return engine.command(
                model=_needed(file, model), host=host, port=PORT_PLACEHOLDER, alias=model.name, args=args
            )
        case "vllm":
            return ("vllm", "serve", str(_needed(file, model)), *_served(model, host), *args)
        case "sglang":
            launch = (sys.executable, "-m", "sglang.launch_server", "--model-path", str(_needed(file, model)))
            # It takes one name only; a turn for an alias is told to it under its own.
            place = ("--host", host, "--port", PORT_PLACEHOLDER, "--served-model-name", model.name)
            key = ("--api-key", where.key) if where.key else ()  # it reads no variable
            return (*launch, *place, "--enable-metrics", *key, *args)
        case "ollama":
            return ()
        case "command":
            return _own_command(model, _known(model, file, kv_folder), args)
        case _:
            assert_never(model.backend)


def key_variables(model: LauncherModel, name: str, key: str) -> Mapping[str, str]:
    """Return the variables by which an engine learns the key that it is to ask for.

    Args:
        model: as declared.
        name: of the variable that holds the key here.
        key: what it holds; empty: there is none.
    """
    if not key:
        return {}
    match model.backend:
        case "llama.cpp":
            return {"LLAMA_API_KEY": key}
        case "vllm":
            return {"VLLM_API_KEY": key}
        case "command":
            return {name: key}
        case "sglang" | "ollama":
            return {}
        case _:
            assert_never(model.backend)


def with_port(argv: Sequence[str], port: int) -> tuple[str, ...]:
    """Return a command line with a port in its place."""
    return tuple(word.replace(PORT_PLACEHOLDER, str(port)) for word in argv)


def stop_command_line(model: LauncherModel, file: Path | None) -> tuple[str, ...]:
    """Return what ends the engine, empty where signals do.

    Raises:
        UnusableError: it has a placeholder that nobody knows.
    """
    return tuple(_filled(word, _known(model, file, None), "stop_command") for word in model.stop_command)


def parks(model: LauncherModel, kv_folder: Path | None) -> bool:
    """Return whether the engine is started so that its slots can be saved."""
    says_where = any(SLOTS_PLACEHOLDER in word for word in (*model.command, *model.args))
    return kv_folder is not None and (model.backend == "llama.cpp" or (model.backend == "command" and says_where))


def _known(model: LauncherModel, file: Path | None, kv_folder: Path | None) -> Mapping[str, str]:
    slots = str(kv_folder) if kv_folder is not None else ""
    return {"port": PORT_PLACEHOLDER, "model": str(file or model.name), "python": sys.executable, "slots": slots}


def _served(model: LauncherModel, host: str) -> tuple[str, ...]:
    return ("--host", host, "--port", PORT_PLACEHOLDER, "--served-model-name", model.name, *model.aliases)


def _own_command(model: LauncherModel, known: Mapping[str, str], args: Sequence[str]) -> tuple[str, ...]:
    argv = (*(_filled(word, known, "command") for word in model.command), *args)
    if not argv:
        raise UnusableError("command", "is missing; backend 'command' needs the program and its arguments")
    if not model.port and not any(PORT_PLACEHOLDER in word for word in argv):
        raise UnusableError("command", f"must contain {PORT_PLACEHOLDER}, or the model a fixed port")
    return argv


def _needed(file: Path | None, model: LauncherModel) -> Path:
    if file is None:
        raise UnusableError("model_path", f"is missing; backend {shown(model.backend)} needs the model's file")
    return file


def _filled(word: str, known: Mapping[str, str], key: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            names = ", ".join(f"${{{name}}}" for name in known)
            raise UnusableError(key, f"knows no placeholder {shown(match[0])}; there are {names}")
        return known[match[1]]

    return _PLACEHOLDER.sub(value, word)
