"""The sim command."""

import json
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from cli.program import run
from luftpause.cli import sim as module
from luftpause.cli.main import main
from luftpause.testkit.sim.scenario import Scenario, load_scenario
from luftpause.testkit.sim.simulate import BrokenRuleError, Simulated

QUICK = ("w7-faults", "--minutes", "0.2", "--seeds", "2", "--arms", "direct,turn-admission")


def sim(*arguments: str) -> tuple[int, str, str]:
    answer = CliRunner().invoke(main, ["sim", *arguments])
    return answer.exit_code, answer.stdout, answer.stderr


def test_arms_are_compared_in_a_table() -> None:
    code, out, err = sim(*QUICK, "--check")
    assert (code, err) == (0, "")
    assert "w7-faults: 0.2 min after 30 s, seeds 1 to 2, median (least–greatest)" in out
    assert "direct" in out
    assert "turn-admission" in out
    assert "every state sound, every decision lawful, nothing left open" in out


def test_all_figures_are_written_as_json(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    code, out, _ = sim(*QUICK, "--json", str(file))
    report = json.loads(file.read_text(encoding="utf-8"))
    assert code == 0
    assert "w7-faults" in out
    assert [arm["arm"] for arm in report["arms"]] == ["direct", "turn-admission"]
    assert sim(*QUICK, "--json", "-")[1] == file.read_text(encoding="utf-8")


def test_a_scenario_is_shown_and_what_was_shown_can_be_simulated(tmp_path: Path) -> None:
    code, shown, _ = sim("w7-faults", "--show")
    mine = tmp_path / "mine.toml"
    mine.write_text(shown.replace('"w7-faults"', '"mine"'), encoding="utf-8")
    assert code == 0
    assert sim(str(mine), "--show")[1] == mine.read_text(encoding="utf-8")
    code, out, _ = sim(str(mine), *QUICK[1:])
    assert code == 0
    assert out.startswith("mine: ")


def test_progress_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = msgspec.structs.replace(load_scenario("w7-faults"), minutes=0.2)
    module._simulate(scenario, "direct", 1, check=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    module._simulate(scenario, "direct", 1, check=False)
    assert "\rdirect, seed 1: 0.2 of 0.7 min" in capsys.readouterr().err


def test_a_broken_rule_is_one_line_and_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(scenario: Scenario, arm: str, seed: int, **_: object) -> Simulated:
        raise BrokenRuleError(f"{scenario.name}, arm {arm}, seed {seed}: a turn was lost")

    monkeypatch.setattr(module, "simulate", broken)
    code, out, err = sim(*QUICK)
    assert (code, out) == (1, "")
    assert err == "error: a rule was broken: w7-faults, arm direct, seed 1: a turn was lost\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nope",), "error: nope: no such scenario; there are "),
        (("w1", "--arms", "best"), "no arm 'best'; there are direct, sglang-router, "),
        (("w1", "--arms", ","), "no arm ','; there are"),
        (("w1", "--seeds", "0"), "--seeds"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...], expected: str) -> None:
    code, _, err = sim(*arguments)
    assert code == 2
    assert expected in err


def test_the_same_seed_gives_the_same_bytes_however_python_hashes(tmp_path: Path) -> None:
    outputs = []
    for hash_seed in ("0", "4711"):
        answer = run("sim", *QUICK, "--json", "-", cwd=tmp_path, env={"PYTHONHASHSEED": hash_seed})
        assert answer.returncode == 0, answer.stderr
        outputs.append(answer.stdout)
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["seeds"] == [1, 2]
