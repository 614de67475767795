"""The command line of each kind of engine, and the arguments that only the launcher may give it.

Pure: starts nothing and looks at no file. How a llama.cpp server is called here, it is told.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, assert_never

from luftpause.config.launcher_schema import LauncherModel
from luftpause.config.problems import shown
from luftpause.ports.processes import LocalEngine

PORT_PLACEHOLDER: Final = "${port}"
SLOTS_PLACEHOLDER: Final = "${slots}"
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")
_PLACE: Final = frozenset(("--host", "--port"))
_OWNED: Final[Mapping[str, frozenset[str]]] = {
    "llama.cpp": _PLACE
    | {"-m", "--model", "-mu", "--model-url", "-dr", "--docker-repo", "-a", "--alias", "--api-prefix", "--reuse-port"}
    | {"--slot-save-path"}
    | {"-hf", "-hfr", "--hf-repo", "-hff", "--hf-file", "-hfv", "-hfrv", "--hf-repo-v", "-hffv", "--hf-file-v"}
    | {"-md", "--model-draft", "--spec-draft-model", "-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf"}
    | {"-mv", "--model-vocoder", "-mmu", "--mmproj-url"}
    | {"--models-dir", "--models-preset", "--models-max", "--models-autoload"},
    "vllm": _PLACE
    | {"--model", "--model-tag", "--served-model-name", "--config", "--uds", "--speculative-config", "--headless"},
    "sglang": _PLACE
    | {"--model", "--model-path", "--served-model-name", "--config"}
    | {"--speculative-draft-model-path", "--speculative-draft"},
    "ollama": frozenset(),
    "command": frozenset(),
}
"""Options that say which file is opened, what else is loaded and where it listens: ours to set."""
_OWNED_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "llama.cpp": ("--fim-", "--gpt-oss-", "--embd-"),
    "vllm": ("--speculative-config.",),
}
"""Ready-made options that name a model to fetch, and the dotted ways to say an owned one."""
_ABBREVIATES: Final = frozenset(("vllm", "sglang"))
"""Their parsers take any beginning of an option for it."""
_OWNED_ENV: Final = re.compile(r"LLAMA_ARG_(MODEL|HF_|DOCKER|HOST|PORT|ALIAS|MMPROJ_URL).*|HF_MODEL")


class Place(NamedTuple):
    """Where an engine listens, and where it writes the KV of its slots; None: nowhere."""

    host: str
    kv_folder: Path | None = None


class UnusableError(Exception):
    """What is wrong with one key of a model."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(what)
        self.key = key
        self.what = what


def command_line(model: LauncherModel, file: Path | None, engine: LocalEngine | None, where: Place) -> tuple[str, ...]:
    """Return program and arguments, with `${port}` where the port belongs; none for a backend that is not started.

    Raises:
        UnusableError: it cannot be started as it stands.
    """
    host, kv_folder = where
    known = _known(model, file, kv_folder)
    args = [_filled(word, known, "args") for word in model.args]
    _refuse_owned(model, args)
    match model.backend:
        case "llama.cpp":
            if engine is None:
                what = "no llama.cpp server was found: put llama-server on PATH, or install luftpause[local]"
                raise UnusableError("backend", what)
            if kv_folder is not None:
                args = ["--slot-save-path", str(kv_folder), *args]
            return engine.command(
                model=_needed(file, model), host=host, port=PORT_PLACEHOLDER, alias=model.name, args=args
            )
        case "vllm":
            return ("vllm", "serve", str(_needed(file, model)), *_served(model, host), *args)
        case "sglang":
            launch = (sys.executable, "-m", "sglang.launch_server", "--model-path", str(_needed(file, model)))
            # It takes one name only; a turn for an alias is told to it under its own.
            place = ("--host", host, "--port", PORT_PLACEHOLDER, "--served-model-name", model.name)
            return (*launch, *place, "--enable-metrics", *args)
        case "ollama":
            return ()
        case "command":
            return _own_command(model, known, args)
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


def _refuse_owned(model: LauncherModel, args: Sequence[str]) -> None:
    owned = _OWNED[model.backend]
    for word in args:
        option = word.partition("=")[0]
        if option.startswith("--"):
            option = option.replace("_", "-")  # these programs take either
        is_owned = option in owned or option.startswith(_OWNED_PREFIXES.get(model.backend, ("\0",)))
        if model.backend in _ABBREVIATES and len(option) > len("--") and option.startswith("--"):
            is_owned = is_owned or any(each.startswith(option) for each in owned)
        if is_owned:
            raise UnusableError("args", f"{shown(word)} is set by the launcher; use model_path, port or name")
    for name in model.env:
        if owned and _OWNED_ENV.fullmatch(name):
            raise UnusableError("env", f"{shown(name)} is set by the launcher; use model_path, port or name")


def _filled(word: str, known: Mapping[str, str], key: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            names = ", ".join(f"${{{name}}}" for name in known)
            raise UnusableError(key, f"knows no placeholder {shown(match[0])}; there are {names}")
        return known[match[1]]

    return _PLACEHOLDER.sub(value, word)
