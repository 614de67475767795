"""SIGUSR1: the catalogue is read anew."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from luftpause.cli.options import ServiceOptions
from luftpause.cli.reloading import reloading
from services.launcher.launcher_world import launched, poll, run


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
