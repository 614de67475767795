"""`luftpause replay`."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adapters.event_log.logs import event_log, write
from luftpause.cli.main import main


def replayed(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", *arguments])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    write(event_log(path), seed=4, length=200)
    return path


def test_a_log_that_holds_is_summed_up(log: Path) -> None:
    for options in ([], ["--check"]):
        told = replayed(str(log), *options)
        assert told.exit_code == 0, told.output
        first, compared, turns, held, holds = told.output.splitlines()
        assert first == "Every decision is the same: 204 events in 1 segments."
        assert compared.split()[0:2] == ["states", "compared"]
        assert "placed" in turns
        assert "p99" in held
        assert holds.split()[0] == "holds"


def test_the_first_difference_is_named_and_exit_code_1(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], *lines[2:]]))
    told = replayed(str(log))
    assert told.exit_code == 1
    assert "line 2: " in told.output
    assert len(told.output.splitlines()) == 1


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    assert replayed(str(tmp_path / "nothing")).exit_code == 2
