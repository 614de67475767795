"""From the configuration to the processes that are to run."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from luftpause.config.problems import ConfigError
from luftpause.config.schema import Launcher
from luftpause.core.model.replicas import EngineKind
from luftpause.services.launcher.planning import LauncherPlan, plan


class FakeEngine:
    """A llama.cpp server whose command line is easy to read."""

    env: Mapping[str, str] = {"LD_LIBRARY_PATH": "/lib", "SHARED": "engine"}

    def command(self, *, model: Path, port: str, alias: str, args: Sequence[str]) -> tuple[str, ...]:
        return ("llama-server", str(model), port, alias, *args)


def launcher(model_dir: Path, *models: Mapping[str, object]) -> Launcher:
    return msgspec.convert({"model_dir": str(model_dir), "models": list(models)}, Launcher)


def planned(section: Launcher, *, bundled: Path | None = None) -> LauncherPlan:
    return plan(section, engine=FakeEngine(), bundled_model=bundled)


def complaints(section: Launcher) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        planned(section)
    return [f"{problem.key}: {problem.what}" for problem in caught.value.problems]


def llama(**changes: object) -> dict[str, object]:
    return {"name": "smollm2", "backend": "llama.cpp", "model_path": "small.gguf", **changes}


def command(*argv: str, **changes: object) -> dict[str, object]:
    return {"name": "other", "backend": "command", "command": list(argv), **changes}


def test_each_instance_of_a_llama_cpp_model_becomes_an_engine(tmp_path: Path) -> None:
    (tmp_path / "small.gguf").touch()
    section = launcher(tmp_path, llama(instances=2, aliases=["small"], args=["--mlock"], env={"SHARED": "model"}))
    first, second = planned(section).engines
    assert (first.replica, second.replica) == ("smollm2-1", "smollm2-2")
    assert (first.instance, second.instance, first.instances) == (1, 2, 2)
    assert first.models == ("smollm2", "small")
    assert first.argv == ("llama-server", str((tmp_path / "small.gguf").resolve()), "${port}", "smollm2", "--mlock")
    assert first.env == {"LD_LIBRARY_PATH": "/lib", "SHARED": "model"}
    assert first.engine is EngineKind.LLAMA_CPP
    assert (first.health, first.port, first.readiness_timeout_s) == ("/health", 0, 300.0)


def test_placeholders_of_a_command_are_filled_in_but_for_the_port(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    argv = ("${python}", "-m", "serve", "--model=${model}", "--port", "${port}")
    section = launcher(tmp_path, command(*argv, model_path="weights", args=["--name", "${model}"], health="/ready"))
    (engine,) = planned(section).engines
    weights = str((tmp_path / "weights").resolve())
    assert engine.argv == (sys.executable, "-m", "serve", f"--model={weights}", "--port", "${port}", "--name", weights)
    assert engine.env == {}
    assert (engine.engine, engine.health) == (EngineKind.AUTO, "/ready")


def test_a_command_without_a_model_file_gets_the_models_name(tmp_path: Path) -> None:
    (engine,) = planned(launcher(tmp_path, command("serve", "${model}", "${port}"))).engines
    assert engine.argv == ("serve", "other", "${port}")


def test_a_command_with_a_fixed_port_need_not_be_told_of_it(tmp_path: Path) -> None:
    (engine,) = planned(launcher(tmp_path, command("serve", port=8123))).engines
    assert (engine.argv, engine.port) == (("serve",), 8123)


def test_the_grace_is_that_of_the_section() -> None:
    assert planned(msgspec.convert({"stop_grace": "1500ms"}, Launcher)) == LauncherPlan(engines=(), stop_grace_s=1.5)


def test_a_model_file_must_lie_in_the_folder_whatever_its_path_looks_like(tmp_path: Path) -> None:
    inside, outside = tmp_path / "models", tmp_path / "elsewhere"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.gguf").touch()
    (inside / "link.gguf").symlink_to(outside / "secret.gguf")
    (inside / "door").symlink_to(outside)
    for path in ("../elsewhere/secret.gguf", str(outside / "secret.gguf"), "link.gguf", "door/secret.gguf"):
        (complaint,) = complaints(launcher(inside, llama(model_path=path)))
        assert complaint.startswith("launcher.models[0].model_path: ")
        assert "lies outside launcher.model_dir" in complaint


def test_a_folder_that_is_itself_a_symlink_holds_its_files(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "small.gguf").touch()
    (tmp_path / "models").symlink_to(tmp_path / "disk")
    (engine,) = planned(launcher(tmp_path / "models", llama())).engines
    assert engine.argv[1] == str((tmp_path / "disk" / "small.gguf").resolve())


def test_the_bundled_model_alone_may_lie_elsewhere(tmp_path: Path) -> None:
    bundled = tmp_path / "site-packages" / "bundled.gguf"
    bundled.parent.mkdir()
    bundled.touch()
    section = launcher(tmp_path / "models", llama(model_path=str(bundled)))
    (engine,) = planned(section, bundled=bundled).engines
    assert engine.argv[1] == str(bundled.resolve())
    neighbour = launcher(tmp_path / "models", llama(model_path=str(bundled.with_name("other.gguf"))))
    with pytest.raises(ConfigError):
        planned(neighbour, bundled=bundled)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (llama(model_path="missing.gguf"), "model_path: there is no"),
        (llama(model_path=""), "model_path: is missing"),
        (llama(args=["--model=/etc/passwd"]), "args: '--model=/etc/passwd' is set by the launcher"),
        (llama(args=["--host", "0.0.0.0"]), "args: '--host' is set by the launcher"),
        (
            command("serve", "${prot}"),
            "command: knows no placeholder '${prot}'; there are ${port}, ${model}, ${python}",
        ),
        (command("serve", "${port}", args=["${}"]), "args: knows no placeholder '${}'"),
        (command("serve"), "command: must contain ${port}, or the model a fixed port"),
        (command(), "command: is missing"),
    ],
)
def test_what_cannot_be_started_is_said_with_its_key(
    tmp_path: Path, model: Mapping[str, object], complaint: str
) -> None:
    (tmp_path / "small.gguf").touch()
    (found,) = complaints(launcher(tmp_path, model))
    assert found.startswith(f"launcher.models[0].{complaint}")


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    section = launcher(tmp_path, command("serve"), llama(), command("${x}", name="third"))
    assert [complaint.split(":")[0] for complaint in complaints(section)] == [
        "launcher.models[0].command",
        "launcher.models[1].model_path",
        "launcher.models[2].command",
    ]


def test_a_machine_without_llama_cpp_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "small.gguf").touch()
    with pytest.raises(ConfigError, match=r"launcher\.models\[0\]\.backend: no llama\.cpp server was found"):
        plan(launcher(tmp_path, llama()), engine=None, bundled_model=None)
