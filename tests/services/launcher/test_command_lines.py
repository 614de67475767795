"""The command line of each kind of engine."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from luftpause.config.launcher_schema import LauncherModel
from luftpause.services.launcher.command_lines import Place, command_line, key_variables, parks, stop_command_line
from luftpause.services.launcher.engine_arguments import UnusableError

FILE = Path("/models/m")


class FakeEngine:
    """A llama.cpp server whose command line is easy to read."""

    env: Mapping[str, str] = {}

    def command(self, *, model: Path, host: str, port: str, alias: str, args: Sequence[str]) -> tuple[str, ...]:
        return ("llama-server", str(model), host, port, alias, *args)


def line(backend: str, kv_folder: Path | None = None, **keys: object) -> tuple[str, ...]:
    return command_line(declared(backend, **keys), FILE, FakeEngine(), Place("127.0.0.1", "/models", kv_folder)).argv


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


def test_what_ends_an_engine_knows_its_port() -> None:
    model = msgspec.convert({"name": "m", "backend": "command", "stop_command": ["stop", "${port}"]}, LauncherModel)
    assert stop_command_line(model, None) == ("stop", "${port}")
    bad = msgspec.structs.replace(model, stop_command=["${pid}"])
    with pytest.raises(UnusableError, match="knows no placeholder"):
        stop_command_line(bad, None)


def test_each_engine_learns_its_key_where_it_looks_for_one_and_no_other_way() -> None:
    found = {
        backend: key_variables(declared(backend), "MINE", "secret")
        for backend in ("llama.cpp", "vllm", "sglang", "command", "ollama")
    }
    assert found == {
        "llama.cpp": {"LLAMA_API_KEY": "secret"},
        "vllm": {"VLLM_API_KEY": "secret"},
        "sglang": {},
        "command": {"MINE": "secret"},
        "ollama": {},
    }
    assert key_variables(declared("vllm"), "", "") == {}
    place = Place("127.0.0.1", "/models", None, "secret")
    for backend in ("llama.cpp", "vllm", "sglang"):
        argv = command_line(declared(backend), FILE, FakeEngine(), place).argv
        assert ("secret" in argv) is (backend == "sglang"), "others may list processes; it alone reads no variable"
