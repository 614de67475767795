"""`luftpause doctor`, without anything that runs."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.examining.subjects import LOOK_S
from luftpause.cli.main import main
from stories.set_ups import FREE_PORTS

PORTS = ("dataplane.port", "runtime.port", "scheduler.port", "scheduler.http_port")
EXTRA = '[[replicas]]\nname = "a"\nurl = "http://127.0.0.1:1"\nmodels = ["m"]\n'


@pytest.fixture(autouse=True)
def empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUFTPAUSE_TOKEN", raising=False)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("luftpause")
    before, levels = root.handlers[:], (root.level, own.level)
    yield
    root.handlers[:] = before
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", "--patience", str(LOOK_S), *arguments])


def test_a_broken_configuration_is_an_error_for_each_mistake() -> None:
    Path("luftpause.toml").write_text("[dataplane]\nport = -1\nhots = 'x'\n", "utf-8")
    answer = doctor()
    assert answer.exit_code == 1
    assert "-> edit luftpause.toml:2, then: luftpause config check" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "2 errors"


def test_an_engine_that_is_not_there_makes_the_exit_code_1_and_is_in_the_json() -> None:
    Path("my.toml").write_text(FREE_PORTS + EXTRA, "utf-8")
    answer = doctor("--json", "--config", "my.toml")
    assert answer.exit_code == 1
    told = json.loads(answer.stdout)
    errors = [each for each in told["findings"] if each["grade"] == "error"]
    assert (told["ok"], [each["check"] for each in errors]) == (False, ["engines"])
    assert [each["check"] for each in told["findings"]] == sorted(
        (each["check"] for each in told["findings"]),
        key=["config", "ports", "access", "services", "engines", "tools", "journal", "launcher", "compiled"].index,
    )


def test_what_up_would_start_without_a_configuration_is_looked_at() -> None:
    told = json.loads(doctor("--json", *(f"--set={key}=0" for key in PORTS)).stdout)
    seen = {each["check"]: each["seen"] for each in told["findings"]}
    assert seen["tools"] == "fake lists lookup, deep_search"
    assert "`luftpause up` starts 2 " in seen["config"]
