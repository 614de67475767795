"""The bench command."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from cli.program import WAIT_S, command_line
from luftpause.cli import bench as module
from luftpause.cli.bench_output import Destination
from luftpause.cli.main import main
from luftpause.testkit.bench.bench import Begins, Effort
from luftpause.testkit.bench.jobs import Done
from luftpause.testkit.bench.over_http.children import wait_until
from luftpause.testkit.bench.results import ArmResult, WorkloadResult, load_results
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.bench.workloads import WORKLOADS, Workload
from testkit.bench.measured import MACHINE, SMALL, result

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
        assert f"\n{workload.name} " in out
        assert ", ".join(workload.engines) in out


def test_a_workload_is_measured_and_judged() -> None:
    code, out, err = bench("Small", *QUICK[1:])
    assert code == 0
    said = "medians of seeds 1 to 2 (least–greatest), × is to sglang-router-tuned, * is best"
    assert f"A small flood (w7-slow): {said}" in " ".join(out.split())
    assert "What must be shown" in out
    assert "met" in out
    assert "small: 6 of 6 measurements are done" in err


def test_the_result_of_one_workload_is_written_as_json(tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    assert bench(*QUICK, "--json", str(file))[0] == 0
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert {"workload", "commit", "seeds", "arms", "verdicts", "machine"} <= stored.keys()
    assert [arm["arm"] for arm in stored["arms"]] == list(SMALL.arms)
    printed = json.loads(bench(*QUICK, "--json", "-")[1])
    assert printed["arms"] == stored["arms"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full here")
def test_what_a_full_disk_does_not_keep_is_shown_all_the_same() -> None:
    code, out, err = bench(*QUICK, "--arms", "turn-admission", "--json", "/dev/full")
    assert code == 1
    assert "(least–greatest), × is to turn-admission, * is best" in " ".join(out.split())
    assert "/dev/full: cannot write it: No space left on device" in err


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
        (("small", "--arms", "best", "--engine", "http"), "there are direct, sglang-router-tuned, turn-admission"),
        (("small", "--arms", ""), "no arm is named; in small there are direct, sglang-router-tuned, turn-admission"),
        (("small", "--rev", "no-such-commit"), "no commit 'no-such-commit'"),
        (("small", "--json", "/no/such/folder/small.json"), "cannot write '/no/such/folder/small.json': No such file"),
        (("small", "--json", "/"), "'/' is a directory"),
        (("small", "--results", "/dev/null"), "cannot write into '/dev/null'"),
    ],
)
def test_what_cannot_be_measured_or_kept_is_told_before_anything_is_measured(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "simulate_workload", lambda *_: pytest.fail("it was measured"))
    monkeypatch.setattr(module, "measure_workload", lambda *_: pytest.fail("it was measured"))
    code, _, err = bench(*arguments)
    assert code in (1, 2)
    assert said in err


def test_trying_where_the_result_goes_leaves_nothing_there(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text("as it was", encoding="utf-8")
    for name in ("kept.json", "new.json"):
        Destination.of(str(tmp_path / name), None)
    assert [file.name for file in tmp_path.iterdir()] == ["kept.json"]
    assert kept.read_text(encoding="utf-8") == "as it was"


def test_a_workload_says_which_engines_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKLOADS", {"small": replace(SMALL, engines=("http", "llama"))})
    code, _, err = bench("small")
    assert code == 2
    assert "small cannot be measured on sim: give --engine http or llama" in err


def test_over_http_a_workload_brings_its_own_window_arms_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[tuple[str, ...], tuple[int, ...], Window]] = []

    def measured(
        workload: Workload, arms: tuple[str, ...], effort: Effort, window: Window, *_: Done | Begins
    ) -> WorkloadResult:
        asked.append((arms, effort.seeds, window))
        return result(sglang_router_tuned=[1.0])

    monkeypatch.setattr(module, "measure_workload", measured)
    assert bench("small", "--engine", "http")[0] == 0
    assert bench("small", "--engine", "http", "--speed", "3", "--minutes", "7", "--seeds", "1")[0] == 0
    assert bench("small", "--engine", "llama", "--arms", "direct")[0] == 0
    own, given, real = asked
    assert own == (SMALL.arms, (1, 2), SMALL.on_http)
    assert given[1:] == ((1,), replace(SMALL.on_http, speed=3.0, minutes=7.0))
    assert real == (("direct",), (1, 2), SMALL.on_llama)


def test_ctrl_c_ends_it_with_one_line_and_what_is_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def simulated(workload: Workload, *_: object) -> WorkloadResult:
        if done:
            raise KeyboardInterrupt
        done.append(workload.name)
        return replace(result(sglang_router_tuned=[1.0]), workload=workload.name)

    monkeypatch.setattr(module, "simulate_workload", simulated)
    monkeypatch.setattr(module, "WORKLOADS", {"small": SMALL, "other": replace(SMALL, name="other")})
    handler = signal.getsignal(signal.SIGTERM)
    code, _, err = bench("all", "--results", str(tmp_path))
    assert code == 130
    assert err.endswith("stopped; small is kept\n")
    assert [each.workload for each in load_results(tmp_path)] == ["small"]
    assert signal.getsignal(signal.SIGTERM) is handler


def serving(folder: Path) -> tuple[list[int], str]:
    """Return the processes of a bench's engines and a URL of one, once all are ready."""
    ready = [json.loads(file.read_text(encoding="utf-8") or "{}") for file in folder.glob("luftpause-bench-*/*.json")]
    up = [each for each in ready if "pid" in each]
    return [each["pid"] for each in up], up[0]["engine"] if len(up) == 2 else ""


def at_work(folder: Path) -> bool:
    """Whether an engine of a bench has taken turns in."""
    url = serving(folder)[1]
    if not url:
        return False
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        return any(
            float(line.rpartition(" ")[2]) > 0
            for line in answer.read().decode().splitlines()
            if "prompt_tokens_total" in line and line[0] != "#"
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_stops_it_in_the_middle_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    command = command_line("bench", "w6", "--engine", "http", "--arms", "direct", "--seeds", "1", "--minutes", "9")
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: at_work(tmp_path), timeout_s=WAIT_S, what="an engine at work")
            engines, _ = serving(tmp_path)
            process.send_signal(number)
            _, said = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
    assert (process.returncode, said.splitlines()[-1]) == (130, "stopped; nothing is kept")
    assert list(tmp_path.iterdir()) == []
    assert not [pid for pid in engines if Path(f"/proc/{pid}").exists()]


def test_where_nobody_can_be_had_nothing_is_measured_and_what_was_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luftpause.testkit.bench.over_http.doors.PEERS", tmp_path / "none")
    stored = tmp_path / "small-http.json"
    stored.write_text("before", encoding="utf-8")
    options = ("--engine", "http", "--arms", "sglang-router-tuned", "--seeds", "1", "--results", str(tmp_path))
    code, _, err = bench("small", *options)
    assert code == 1
    assert "small: 0 of 1 measurements are done" in err
    assert "absent: sglang-router-tuned: sglang-router is not in" in err
    assert err.endswith("error: nothing of small could be measured\n")
    assert stored.read_text(encoding="utf-8") == "before"


@pytest.mark.parametrize(("load", "is_busy"), [(0.4, False), (9.5, True)])
def test_where_real_time_passes_a_busy_machine_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, load: float, is_busy: bool
) -> None:
    measured = replace(
        result(sglang_router_tuned=[1.0]),
        engine="http",
        setup={"most cores busy": "door 0.16"},
        machine=msgspec.structs.replace(MACHINE, load_before=load),
    )
    monkeypatch.setattr(module, "measure_workload", lambda *_: measured)
    code, out, err = bench("small", "--engine", "http")
    assert code == 0
    assert "most cores busy door 0.16" in out
    assert ("load average 9.5 on 2 cores before it began" in err) is is_busy


def test_what_would_change_nothing_is_refused() -> None:
    code, _, err = bench(*QUICK, "--speed", "3")
    assert code == 2
    assert "give --engine http" in err


@pytest.mark.parametrize(
    ("arms", "expected"), [("turn-admission,direct", ["turn-admission"]), ("direct", ["turn-admission", "working-set"])]
)
def test_another_commit_is_measured_in_the_arms_of_ours_that_were_chosen(
    monkeypatch: pytest.MonkeyPatch, arms: str, expected: list[str]
) -> None:
    asked: list[tuple[str, Sequence[str]]] = []

    def measured(folder: Path, name: str, chosen: tuple[str, Sequence[str]], *_: object) -> tuple[ArmResult, ...]:
        asked.append(chosen)
        return ()

    monkeypatch.setattr(module, "named", lambda revision: revision)
    monkeypatch.setattr(module, "checked_out", lambda name: nullcontext(Path()))
    monkeypatch.setattr(module, "measured_at", measured)
    both = replace(SMALL, arms=("direct", "turn-admission", "working-set"))
    monkeypatch.setattr(module, "WORKLOADS", {"small": both})
    assert bench(*QUICK, "--arms", arms, "--rev", "abc")[0] == 0
    assert asked == [("small", expected)]


def test_the_help_teaches(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = bench("--help")
    assert code == 0
    for said in ("luftpause bench w1 w3 w6 --engine http", "--rev HEAD~20 --rev HEAD", "sh scripts/bench"):
        assert said in out


def test_several_results_do_not_fit_into_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKLOADS", {"small": SMALL, "other": replace(SMALL, name="other")})
    code, _, err = bench("small", "other", "--json", "-")
    assert code == 2
    assert "--results FOLDER" in err
