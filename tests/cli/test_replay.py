"""`luftpause replay`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adapters.event_log.logs import event_log, write
from luftpause.cli import replay as module
from luftpause.cli.main import main
from luftpause.testkit.sim.simulate import BrokenRuleError
from luftpause.testkit.what_if.asking import Answer
from testkit.sim.worlds import crowd
from testkit.what_if.recorded import recorded


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


def test_a_log_that_was_cut_between_two_lines_is_said_to_have_no_end(log: Path) -> None:
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-50]))
    told = replayed(str(log))
    assert told.exit_code == 0, told.output
    assert told.output.splitlines()[0] == (
        "Every decision is the same: 155 events in 1 segments, 1 without an end (killed or cut)."
    )


def test_the_first_difference_is_named_and_exit_code_1(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], *lines[2:]]))
    told = replayed(str(log))
    assert told.exit_code == 1
    assert "line 2: " in told.output
    assert len(told.output.splitlines()) == 1


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    assert replayed(str(tmp_path / "nothing")).exit_code == 2


@pytest.fixture
def load(tmp_path: Path) -> Path:
    path = tmp_path / "load"
    path.write_bytes(b"".join(recorded(crowd(), 0.5)))
    return path


def test_what_another_policy_would_have_done_is_shown_beside_what_was_recorded(load: Path) -> None:
    told = replayed(str(load), "--policy", "direct", "--check")
    assert told.exit_code == 0, told.output
    assert told.output.startswith("An estimate, not a replay: what the log recorded, direct on modelled engines.")
    assert "what-if, simulated (direct)" in told.output
    assert "turns held" in told.output
    assert "every decision lawful" in told.output


def test_the_figures_are_written_as_json(load: Path, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    told = replayed(str(load), "--policy", "sglang-router", "--engine", "w1", "--seed", "3", "--json", str(file))
    assert told.exit_code == 0, told.output
    report = json.loads(file.read_text(encoding="utf-8"))
    assert (report["policy"], report["seed"], report["engines"][0]["fitted"]) == ("sglang-router", 3, [])
    same = ("--policy", "sglang-router", "--engine", "w1", "--seed", "3", "--json", "-")
    assert replayed(str(load), *same).stdout == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--policy", "best"), "'best' is not one of 'direct', 'sglang-router', "),
        (("--engine", "w1"), "belong to --policy"),
        (("--seed", "1"), "belong to --policy"),
        (("--policy", "direct", "--engine", "nope"), "no such scenario"),
    ],
)
def test_wrong_usage_is_exit_code_2(load: Path, arguments: tuple[str, ...], said: str) -> None:
    told = replayed(str(load), *arguments)
    assert told.exit_code == 2
    assert said in told.output


def test_a_file_that_is_no_log_and_one_without_runs_are_one_line_and_exit_code_1(log: Path, tmp_path: Path) -> None:
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    other = tmp_path / "other"
    other.write_text("hello\nworld\n")
    for file, said in ((other, "line 1: "), (other, "write one with --event-log"), (log, "no run in it was answered")):
        told = replayed(str(file), "--policy", "direct")
        assert told.exit_code == 1
        assert said in told.output
        assert len(told.output.splitlines()) == 1


def test_a_broken_rule_is_one_line_and_exit_code_1(load: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Answer:
        raise BrokenRuleError("a turn was lost")

    monkeypatch.setattr(module, "ask", broken)
    told = replayed(str(load), "--policy", "direct")
    assert (told.exit_code, told.output) == (1, "error: a rule was broken: a turn was lost\n")


def test_progress_is_shown_on_a_terminal_only(load: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert " of " not in replayed(str(load), "--policy", "direct").stderr
    module._progress()("direct", 60.0, 120.0)
    assert "\rdirect: 1.0 of 2.0 min" in capsys.readouterr().err
