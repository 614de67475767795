"""The bench command."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from luftpause.cli import bench as module
from luftpause.cli.main import main
from luftpause.testkit.bench.results import load_results
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.workloads import WORKLOADS
from testkit.bench.measured import SMALL, sample

QUICK = ("small", "--seeds", "2", "--minutes", "0.2", "--jobs", "1")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKLOADS", {"small": SMALL})


def bench(*arguments: str) -> tuple[int, str, str]:
    answer = CliRunner().invoke(main, ["bench", *arguments])
    return answer.exit_code, answer.stdout, answer.stderr


def test_without_a_workload_all_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKLOADS", WORKLOADS)
    code, out, _ = bench()
    assert code == 0
    for workload in WORKLOADS.values():
        assert f"│ {workload.name} " in out


def test_a_workload_is_measured_and_judged() -> None:
    code, out, err = bench("Small", *QUICK[1:])
    assert code == 0
    assert "A small flood (w7-slow): seeds 1 to 2, × is to sglang-router-tuned" in out
    assert "What must be shown" in out
    assert "met" in out
    assert "small: 6 measurements are done" in err


def test_the_result_of_one_workload_is_written_as_json(tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    assert bench(*QUICK, "--json", str(file))[0] == 0
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert {"workload", "commit", "seeds", "arms", "verdicts", "machine"} <= stored.keys()
    assert [arm["arm"] for arm in stored["arms"]] == list(SMALL.arms)
    printed = json.loads(bench(*QUICK, "--json", "-")[1])
    assert printed["arms"] == stored["arms"]


def test_results_and_plots_of_several_are_stored_in_a_folder(tmp_path: Path) -> None:
    assert bench("all", *QUICK[1:], "--results", str(tmp_path / "new"))[0] == 0
    (result,) = load_results(tmp_path / "new")
    assert result.workload == "small"
    assert (tmp_path / "new" / "small-sim.svg").read_text(encoding="utf-8").startswith("<svg")


def test_strict_fails_when_something_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench(*QUICK, "--strict")[0] == 0
    hopeless = replace(SMALL, claims=(replace(SMALL.claims[0], bound=50.0),))
    monkeypatch.setattr(module, "WORKLOADS", {"small": hopeless})
    code, out, _ = bench(*QUICK, "--strict")
    assert code == 1
    assert "missed by" in out
    assert bench(*QUICK)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing",), "no workload 'nothing'; there are small and all"),
        (("small", "--arms", "best"), "no arm 'best' in small"),
        (("small", "--engine", "abacus"), "'abacus' is not one of"),
        (("small", "--rev", "no-such-commit", *QUICK[1:], "--arms", "direct"), "rev-parse"),
    ],
)
def test_what_cannot_be_measured_is_told(arguments: tuple[str, ...], said: str) -> None:
    code, _, err = bench(*arguments)
    assert code != 0
    assert said in err


def test_several_results_do_not_fit_into_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKLOADS", {"small": SMALL, "other": replace(SMALL, name="other")})
    code, _, err = bench("small", "other", "--json", "-")
    assert code == 2
    assert "--results FOLDER" in err


def test_a_bar_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with module._progress("small", 2) as done:
        done(Job(scenario="w7-slow", arm="direct", seed=1), sample(1.0))
    assert "measurements are done" not in capsys.readouterr().err
