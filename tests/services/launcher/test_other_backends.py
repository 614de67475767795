"""vLLM and SGLang from the configuration to an engine that serves, with stand-ins that take the options they take."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from luftpause.config.launcher_schema import Launcher
from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.residency.events import LoadFailed, ModelDown, ModelUp
from luftpause.services.launcher.planning import Machine, ModelPlan, plan
from luftpause.services.launcher.readiness import answers
from services.launcher.launcher_world import is_alive, launched, run

KEY_VARIABLE = "ENGINES"
STAND_IN = Path(__file__).with_name("other_backend.py")


def planned(folder: Path, backend: str, *args: str, aliases: Sequence[str] = (), key: str = "") -> ModelPlan:
    """Plan a model of a backend whose program is a stand-in: on PATH, or as a package."""
    (folder / "weights").mkdir()
    script = folder / "vllm"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" vllm "$@"\n')
    script.chmod(0o755)
    package = folder / "sglang"
    package.mkdir()
    (package / "launch_server.py").write_text(
        f"import runpy, sys\nsys.argv.insert(1, 'sglang')\nrunpy.run_path({str(STAND_IN)!r}, run_name='__main__')\n"
    )
    section = {
        "model_dir": str(folder),
        "api_key_env": KEY_VARIABLE if key else "",
        "models": [
            {
                "name": "m",
                "aliases": list(aliases),
                "backend": backend,
                "model_path": "weights",
                "args": list(args),
                "env": {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(folder)},
            }
        ],
    }
    machine = Machine(engine=None, bundled_model=None, ram=1 << 30, engine_key=key)
    (found,) = plan(msgspec.convert(section, Launcher), machine).models
    return found


def asked(url: str, path: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url + path, timeout=10) as answer:
        return answer.status, answer.read()


@pytest.mark.parametrize(
    ("backend", "args", "kind", "names"),
    [
        ("vllm", ("--enforce-eager", "--scheduling-policy", "priority"), EngineKind.VLLM, ["m", "n"]),
        ("sglang", ("--tp", "1", "--mem-fraction-static", "0.5"), EngineKind.SGLANG, ["m"]),
    ],
)
def test_a_model_is_served_under_its_name_with_counters_and_goes_when_ordered(
    tmp_path: Path, backend: str, args: tuple[str, ...], kind: EngineKind, names: list[str]
) -> None:
    async def story() -> None:
        async with launched(planned(tmp_path, backend, *args, aliases=["n"])) as world:
            world.scheduler.load("m")
            replica = (await world.scheduler.until(ModelUp)).replica
            assert (replica.engine, replica.models) == (kind, ("m",))
            rows = json.loads(asked(replica.endpoint.url, "/v1/models")[1])["data"]
            assert [row["id"] for row in rows] == names, "SGLang takes one; a turn for an alias names it so"
            assert asked(replica.endpoint.url, "/metrics")[0] == 200
            (view,) = world.launcher.snapshot()
            world.scheduler.unload("m")
            await world.scheduler.until(ModelDown)
            assert not is_alive(view.pid)

    run(story())


@pytest.mark.parametrize("backend", ["vllm", "sglang"])
def test_an_engine_with_a_key_answers_us_and_nobody_else(
    tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")

    async def story() -> None:
        async with launched(planned(tmp_path, backend, key="secret")) as world:
            world.scheduler.load("m")
            endpoint = (await world.scheduler.until(ModelUp)).replica.endpoint
            assert endpoint.api_key_env == KEY_VARIABLE, "told by name, never by value"
            with pytest.raises(urllib.error.HTTPError, match="401"):
                asked(endpoint.url, "/v1/models")
            assert await answers(world.engines, endpoint, "/v1/models")

    run(story())


@pytest.mark.parametrize("backend", ["vllm", "sglang"])
def test_an_option_that_it_does_not_take_fails_the_load_with_its_words(tmp_path: Path, backend: str) -> None:
    async def story() -> LoadFailed:
        async with launched(planned(tmp_path, backend, "--no-such-option")) as world:
            world.scheduler.load("m")
            return await world.scheduler.until(LoadFailed)

    failed = run(story())
    assert failed.cause.startswith("ended before it was ready (exit status 2)")
    assert "unrecognized arguments: --no-such-option" in failed.tail[-1]


def test_weights_that_are_gone_at_the_start_are_told_and_nothing_is_started(tmp_path: Path) -> None:
    async def story() -> str:
        found = planned(tmp_path, "vllm")
        (tmp_path / "weights").rename(tmp_path / "elsewhere")
        (tmp_path / "weights").symlink_to("/etc")
        async with launched(found) as world:
            world.scheduler.load("m")
            return (await world.scheduler.until(LoadFailed)).cause

    assert "lies outside launcher.model_dir" in run(story())


def test_a_file_of_the_arguments_that_leads_elsewhere_at_the_start_starts_nothing(tmp_path: Path) -> None:
    """What was looked at when the settings were read is looked at again: a link may have been put there since."""
    adapter = tmp_path / "adapter"
    adapter.mkdir()

    async def story() -> str:
        found = planned(tmp_path, "vllm", "--lora-modules", "x=adapter")
        adapter.rmdir()
        adapter.symlink_to("/etc")
        async with launched(found) as world:
            world.scheduler.load("m")
            return (await world.scheduler.until(LoadFailed)).cause

    assert "lies outside launcher.model_dir" in run(story())
