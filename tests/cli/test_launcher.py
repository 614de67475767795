"""`luftpause launcher`; `tests/stories/test_launcher.py` runs it with a scheduler."""

from pathlib import Path

from click.testing import CliRunner

from luftpause.cli.main import main


def test_a_link_that_nobody_can_find_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "luftpause.toml"
    config.write_text("[scheduler]\nport = 0\n", "utf-8")
    answer = CliRunner().invoke(main, ["launcher", "--config", str(config)])
    assert answer.exit_code == 1
    assert "scheduler.port: is 0, so there is no telling where the scheduler's link is" in answer.stderr


def test_models_that_cannot_be_started_are_said_at_once(tmp_path: Path) -> None:
    config = tmp_path / "luftpause.toml"
    config.write_text('[[launcher.models]]\nname = "m"\nbackend = "command"\ncommand = ["serve"]\n', "utf-8")
    answer = CliRunner().invoke(main, ["launcher", "--config", str(config), "--scheduler-port", "1"])
    assert answer.exit_code == 2
    assert "launcher.models[0].command: must contain ${port}" in answer.stderr
