"""Other commits as more arms."""

from dataclasses import replace
from pathlib import Path

import pytest

from luftpause.testkit.bench.claims import Claim
from luftpause.testkit.bench.machine import ROOT
from luftpause.testkit.bench.results import to_json
from luftpause.testkit.bench.revisions import RevisionError, checked_out, measured_at, with_arms
from testkit.bench.measured import FASTER, SMALL, result

CHECKOUT = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a git checkout")
ASKED: Claim = FASTER


class Answer:
    """What a finished process leaves."""

    def __init__(self, stderr: str = "") -> None:
        self.returncode = 1 if stderr else 0
        self.stderr = stderr
        self.stdout = ""


@CHECKOUT
def test_a_commit_is_checked_out_and_gone_again() -> None:
    with checked_out("HEAD") as (name, folder):
        assert (folder / "src/luftpause/__init__.py").exists()
        assert len(name) >= 10
    assert not folder.exists()


@CHECKOUT
@pytest.mark.parametrize("revision", ["no-such-branch", "--force"])
def test_what_is_no_commit_is_refused(revision: str) -> None:
    with pytest.raises(RevisionError), checked_out(revision):
        pass


def test_a_commits_own_bench_is_asked_for_each_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def process(command: list[str], **_: object) -> Answer:
        asked.append(command)
        Path(command[-1]).write_bytes(to_json(result(turn_admission=[4.0])))
        return Answer()

    monkeypatch.setattr("subprocess.run", process)
    (arm,) = measured_at(tmp_path, "abc", SMALL, ["--seeds", "1"])
    assert arm.arm == "turn-admission@abc"
    assert asked[0][1:6] == ["-m", "luftpause", "bench", "small", "--seeds"]
    assert asked[0][-4:-2] == ["--arms", "turn-admission"]


def test_a_commit_without_a_bench_cannot_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: Answer("No such command 'bench'"))
    with pytest.raises(RevisionError, match="abc cannot be measured: No such command 'bench'"):
        measured_at(tmp_path, "abc", SMALL, [])


def test_more_arms_get_verdicts_of_their_own() -> None:
    now = result(sglang_router_tuned=[10.0, 10.0], turn_admission=[16.0, 18.0])
    then = [replace(each, arm="turn-admission@abc") for each in now.arms if each.arm == "turn-admission"]
    both = with_arms(now, then, replace(SMALL, claims=(ASKED,)))
    assert [verdict.arm for verdict in both.verdicts] == ["turn-admission", "turn-admission@abc"]
    assert {verdict.value for verdict in both.verdicts} == {1.7}
    assert len(both.arms) == 3
