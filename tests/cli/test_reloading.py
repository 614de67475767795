"""SIGUSR1: the catalogue is read anew."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from luftpause.cli.options import ServiceOptions
from luftpause.cli.reloading import reloading
from services.launcher.launcher_world import engine, launched, model, poll, run


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_good_file_is_taken_and_a_bad_one_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "luftpause.toml"
    options = ServiceOptions(config=file, ready_file=None, log_level="info", overrides={})

    async def story() -> None:
        async with launched() as world:
            launcher = world.launcher

            def named() -> list[str]:
                return [spec.model for spec in launcher.inventory().catalogue]

            with reloading(options, launcher):
                file.write_text('[[launcher.models]]\nname = "m"\nbackend = "command"\ncommand = ["x", "${port}"]\n')
                os.kill(os.getpid(), signal.SIGUSR1)
                await poll(lambda: named() == ["m"])
                file.write_text("[launcher]\nmodels = 7\n")
                os.kill(os.getpid(), signal.SIGUSR1)
                for _ in range(5):
                    await asyncio.sleep(0.01)
                assert named() == ["m"]

    run(story())
    said = capsys.readouterr()
    assert "launcher: 1 models, read anew" in said.out
    assert "launcher.models: expected a list of tables" in said.err
    assert "was not changed" in said.err


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_file_that_is_gone_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []

    async def story() -> None:
        async with launched(model(engine())) as world:
            before = world.launcher.inventory().catalogue
            assert before
            for config in (None, tmp_path / "named.toml"):
                options = ServiceOptions(config=config, ready_file=None, log_level="info", overrides={})
                with reloading(options, world.launcher):
                    os.kill(os.getpid(), signal.SIGUSR1)
                    said.append(await _said(capsys))
            assert world.launcher.inventory().catalogue == before

    run(story())
    assert said[0].startswith("error: luftpause.toml: there is no such file to read the models from")
    assert said[1].startswith("error: ")
    assert "named.toml: cannot read it" in said[1]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_what_cannot_be_started_is_said_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "luftpause.toml"
    file.write_text('[[launcher.models]]\nname = "m"\nbackend = "command"\ncommand = ["x"]\n')
    options = ServiceOptions(config=file, ready_file=None, log_level="info", overrides={})
    said: list[str] = []

    async def story() -> None:
        async with launched() as world:
            with reloading(options, world.launcher):
                os.kill(os.getpid(), signal.SIGUSR1)
                said.append(await _said(capsys))

    run(story())
    assert said[0].startswith(f"error: {file}:4: launcher.models[0].command: must contain ${{port}}")


async def _said(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the complaint, once it is whole."""
    said = ""

    def is_whole() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return said.endswith("was not changed\n")

    await poll(is_whole)
    return said
