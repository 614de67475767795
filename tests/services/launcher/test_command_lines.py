"""The command line of each kind of engine, and what nobody may slip into it."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from luftpause.config.launcher_schema import LauncherModel
from luftpause.services.launcher.command_lines import Place, UnusableError, command_line, parks, stop_command_line

FILE = Path("/models/m")


class FakeEngine:
    """A llama.cpp server whose command line is easy to read."""

    env: Mapping[str, str] = {}

    def command(self, *, model: Path, host: str, port: str, alias: str, args: Sequence[str]) -> tuple[str, ...]:
        return ("llama-server", str(model), host, port, alias, *args)


def line(backend: str, kv_folder: Path | None = None, **keys: object) -> tuple[str, ...]:
    return command_line(declared(backend, **keys), FILE, FakeEngine(), Place("127.0.0.1", kv_folder))


def declared(backend: str, **keys: object) -> LauncherModel:
    return msgspec.convert({"name": "m", "backend": backend, **keys}, LauncherModel)


def test_engines_that_can_save_their_slots_are_told_where() -> None:
    folder = Path("/state/kv")
    mine = {"command": ["serve", "${port}", "${slots}"]}
    assert line("llama.cpp", folder, args=["--mlock"])[-3:] == ("--slot-save-path", "/state/kv", "--mlock")
    assert line("command", folder, **mine) == ("serve", "${port}", "/state/kv")
    assert line("command", None, **mine) == ("serve", "${port}", "")
    assert parks(declared("llama.cpp"), folder)
    assert parks(declared("command", **mine), folder)
    assert not parks(declared("command", command=["serve", "${port}"]), folder)
    assert not parks(declared("vllm"), folder)
    assert not parks(declared("llama.cpp"), None)


def test_every_backend_serves_the_model_under_its_name_at_its_place() -> None:
    place = ("--host", "127.0.0.1", "--port", "${port}", "--served-model-name", "m")
    assert line("llama.cpp") == ("llama-server", "/models/m", "127.0.0.1", "${port}", "m")
    assert line("vllm", aliases=["n"], args=["--seed", "1"]) == (
        "vllm",
        "serve",
        "/models/m",
        *place,
        "n",
        "--seed",
        "1",
    )
    launch = (sys.executable, "-m", "sglang.launch_server", "--model-path", "/models/m")
    assert line("sglang", args=["--tp", "2"]) == (*launch, *place, "--enable-metrics", "--tp", "2")
    assert line("ollama") == ()
    assert line("command", command=["serve", "${port}", "${model}"]) == ("serve", "${port}", "/models/m")


@pytest.mark.parametrize(
    ("backend", "word"),
    [
        *(("llama.cpp", word) for word in ("-m", "--model", "--model=/x", "--model_draft", "-md", "-hf")),
        *(("llama.cpp", word) for word in ("--model-url", "-hfr", "--models-dir", "--fim-qwen-7b-default", "--port=1")),
        *(("vllm", word) for word in ("--model", "--mod=/x", "--served_model_name", "--speculative-config.m")),
        *(("sglang", word) for word in ("--model-path", "--model-p", "--speculative-draft-model-path=/x", "--host")),
    ],
)
def test_arguments_that_would_bring_in_another_model_or_move_the_engine_are_refused(backend: str, word: str) -> None:
    with pytest.raises(UnusableError, match="is set by the launcher") as caught:
        line(backend, args=["--verbose", word])
    assert caught.value.key == "args"


def test_arguments_that_only_look_alike_are_fine() -> None:
    assert line("llama.cpp", args=["--mlock", "--mmproj", "x", "-mg", "0"])[-1] == "0"
    assert line("vllm", args=["--max-model-len", "4096", "--model-impl", "auto"])[-1] == "auto"
    assert line("command", command=["serve", "${port}"], args=["--model", "x"])[-1] == "x"


@pytest.mark.parametrize("name", ["LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO", "LLAMA_ARG_PORT", "LLAMA_ARG_MODEL_DRAFT"])
def test_variables_that_would_do_the_same_are_refused(name: str) -> None:
    with pytest.raises(UnusableError, match=f"'{name}' is set by the launcher"):
        line("llama.cpp", env={name: "x"})
    assert line("llama.cpp", env={"LLAMA_ARG_THREADS": "1"})


def test_what_ends_an_engine_knows_its_port() -> None:
    model = msgspec.convert({"name": "m", "backend": "command", "stop_command": ["stop", "${port}"]}, LauncherModel)
    assert stop_command_line(model, None) == ("stop", "${port}")
    bad = msgspec.structs.replace(model, stop_command=["${pid}"])
    with pytest.raises(UnusableError, match="knows no placeholder"):
        stop_command_line(bad, None)
