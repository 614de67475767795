"""From the configuration to the processes that are to run."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from luftpause.config.launcher_schema import Launcher
from luftpause.config.problems import ConfigError
from luftpause.core.model.ids import DeviceId
from luftpause.core.model.models import RAM, Device, ModelGroup
from luftpause.core.model.replicas import EngineKind
from luftpause.services.launcher.planning import EnginePlan, LauncherPlan, Machine, plan


class FakeEngine:
    """A llama.cpp server whose command line is easy to read."""

    env: Mapping[str, str] = {"LD_LIBRARY_PATH": "/lib", "SHARED": "engine"}

    def command(self, *, model: Path, host: str, port: str, alias: str, args: Sequence[str]) -> tuple[str, ...]:
        return ("llama-server", str(model), host, port, alias, *args)


def launcher(model_dir: Path, *models: Mapping[str, object]) -> Launcher:
    return msgspec.convert({"model_dir": str(model_dir), "models": list(models)}, Launcher)


def planned(section: Launcher, *, bundled: Path | None = None) -> LauncherPlan:
    return plan(section, Machine(engine=FakeEngine(), bundled_model=bundled, ram=1000))


def engines_of(section: Launcher, *, bundled: Path | None = None) -> tuple[EnginePlan, ...]:
    return tuple(engine for model in planned(section, bundled=bundled).models for engine in model.engines)


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
    first, second = engines_of(section)
    assert (first.replica, second.replica) == ("smollm2-1", "smollm2-2")
    assert (first.instance, second.instance, first.instances) == (1, 2, 2)
    assert first.models == ("smollm2", "small")
    assert first.argv == (
        "llama-server",
        str((tmp_path / "small.gguf").resolve()),
        "127.0.0.1",
        "${port}",
        "smollm2",
        "--mlock",
    )
    assert first.env == {"LD_LIBRARY_PATH": "/lib", "SHARED": "model"}
    assert first.engine is EngineKind.LLAMA_CPP
    assert (first.health, first.port, first.readiness_timeout_s) == ("/health", 0, 300.0)


def test_placeholders_of_a_command_are_filled_in_but_for_the_port(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    argv = ("${python}", "-m", "serve", "--model=${model}", "--port", "${port}")
    section = launcher(tmp_path, command(*argv, model_path="weights", args=["--name", "${model}"], health="/ready"))
    (engine,) = engines_of(section)
    weights = str((tmp_path / "weights").resolve())
    assert engine.argv == (sys.executable, "-m", "serve", f"--model={weights}", "--port", "${port}", "--name", weights)
    assert engine.env == {}
    assert (engine.engine, engine.health) == (EngineKind.AUTO, "/ready")


def test_a_command_without_a_model_file_gets_the_models_name(tmp_path: Path) -> None:
    (engine,) = engines_of(launcher(tmp_path, command("serve", "${model}", "${port}")))
    assert engine.argv == ("serve", "other", "${port}")


def test_a_command_with_a_fixed_port_need_not_be_told_of_it(tmp_path: Path) -> None:
    (engine,) = engines_of(launcher(tmp_path, command("serve", port=8123)))
    assert (engine.argv, engine.port) == (("serve",), 8123)


def test_the_grace_is_that_of_the_section() -> None:
    assert planned(msgspec.convert({"stop_grace": "1500ms"}, Launcher)) == LauncherPlan(
        devices=(Device(device=RAM, memory=1000),), stop_grace_s=1.5
    )


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
    (engine,) = engines_of(launcher(tmp_path / "models", llama()))
    assert engine.argv[1] == str((tmp_path / "disk" / "small.gguf").resolve())


def test_the_bundled_model_alone_may_lie_elsewhere(tmp_path: Path) -> None:
    bundled = tmp_path / "site-packages" / "bundled.gguf"
    bundled.parent.mkdir()
    bundled.touch()
    section = launcher(tmp_path / "models", llama(model_path=str(bundled)))
    (engine,) = engines_of(section, bundled=bundled)
    assert engine.argv[1] == str(bundled.resolve())
    neighbour = launcher(tmp_path / "models", llama(model_path=str(bundled.with_name("other.gguf"))))
    with pytest.raises(ConfigError):
        planned(neighbour, bundled=bundled)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (llama(model_path="missing.gguf"), "model_path: there is no"),
        (llama(model_path=""), "model_path: is missing"),
        (llama(model_path="folder"), "model_path: 'folder' is a folder; llama.cpp opens a GGUF file"),
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
    (tmp_path / "folder").mkdir()
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
        plan(launcher(tmp_path, llama()), Machine(engine=None, bundled_model=None, ram=0))


def test_the_catalogue_says_what_the_scheduler_needs_to_know(tmp_path: Path) -> None:
    (tmp_path / "small.gguf").write_bytes(b"x" * 1000)
    section = msgspec.convert(
        {
            "name": "box",
            "memory": "20GiB",
            "ttl": "never",
            "unload_at_tree_end": True,
            "auto_restart": True,
            "model_dir": str(tmp_path),
            "devices": [{"name": "gpu0", "memory": "24GiB"}],
            "groups": [{"name": "big", "swap": True, "exclusive": True}],
            "models": [
                llama(aliases=["small"], pattern="smol.*", ttl="5m", preload=True, pinned=True, persistent=True),
                command("serve", "${port}", memory="2GiB", device="gpu0", group="big", instances=2),
            ],
        },
        Launcher,
    )
    found = planned(section)
    assert found.launcher == "box"
    assert found.devices == (Device(device=RAM, memory=20 * 2**30), Device(device=DeviceId("gpu0"), memory=24 * 2**30))
    small, big = (model.spec for model in found.models)
    assert (small.model, small.aliases, small.pattern, small.memory) == ("smollm2", ("small",), "smol.*", 1100)
    assert (small.ttl_s, small.preload, small.pinned, small.persistent) == (300.0, True, True, True)
    assert big.persistent, "of several engines nobody knows whether all are idle"
    assert (big.ttl_s, big.memory, big.device, big.group) == (
        None,
        2 * 2**30,
        "gpu0",
        ModelGroup(name="big", swap=True, exclusive=True),
    )
    assert (small.unload_at_tree_end, big.unload_at_tree_end) == (True, False)
    assert small.auto_restart
    assert [engine.memory for engine in found.models[1].engines] == [2**30, 2**30]


def test_the_build_differs_with_what_an_engine_is_started_with_and_with_nothing_else(tmp_path: Path) -> None:
    def build(**changes: object) -> str:
        return planned(launcher(tmp_path, command("serve", "${port}", **changes))).models[0].spec.build

    same = build()
    assert build(ttl="1s", memory="1GiB", preload=True, aliases=["x"], pinned=True) == same
    others = [build(args=["x"]), build(env={"A": "b"}), build(port=8123), build(instances=2), build(health="/ready")]
    assert len({same, *others}) == 6


def test_a_model_of_ollama_has_no_process(tmp_path: Path) -> None:
    (found,) = planned(launcher(tmp_path, {"name": "q", "backend": "ollama", "url": "http://h:1/"})).models
    assert (found.engines, found.ollama_url, found.spec.model) == ((), "http://h:1", "q")


def test_engines_park_kv_where_there_is_a_folder_for_it_and_one_engine_alone(tmp_path: Path) -> None:
    (tmp_path / "small.gguf").touch()
    machine = Machine(engine=FakeEngine(), bundled_model=None, ram=1000, kv_folder=Path("/kv"))
    several = llama(name="several", instances=2)
    section = msgspec.structs.replace(launcher(tmp_path, llama(), several), kv_parking_size="2KiB")
    found = plan(section, machine)
    one, first, second = (engine for model in found.models for engine in model.engines)
    assert found.parking == 2048
    assert (one.parks, first.parks, second.parks) == (True, False, False)
    assert ("--slot-save-path" in one.argv, "--slot-save-path" in first.argv) == (True, False)
    off = plan(msgspec.structs.replace(section, kv_parking="off"), machine)
    assert (off.parking, off.models[0].engines[0].parks) == (0, False)
    nowhere = plan(section, replace(machine, kv_folder=None))
    assert (nowhere.parking, nowhere.models[0].engines[0].parks) == (0, False)
    elsewhere = plan(section, replace(machine, kv_folder=Path("/other"))).models[0]
    assert elsewhere.engines[0].argv != one.argv
    assert elsewhere.spec.build == found.models[0].spec.build, "what was learned of it still holds"
    assert elsewhere.spec.build != nowhere.models[0].spec.build
