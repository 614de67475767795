"""Other commits as more arms."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from luftpause.testkit.bench import revisions as module
from luftpause.testkit.bench.claims import Claim
from luftpause.testkit.bench.machine import ROOT
from luftpause.testkit.bench.over_http.children import wait_until
from luftpause.testkit.bench.results import to_json
from luftpause.testkit.bench.revisions import RevisionError, checked_out, measured_at, named, with_arms
from testkit.bench.measured import FASTER, SMALL, result

CHECKOUT = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a git checkout")
ASKED: Claim = FASTER


class Noted:
    """Notes what is measured."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begins(self, what: str) -> None:
        self.told.append(f"begins {what}")

    def done(self, what: str) -> None:
        self.told.append(f"done {what}")


@CHECKOUT
def test_a_commit_is_checked_out_and_gone_again() -> None:
    name = named("HEAD")
    assert len(name) >= 10
    with checked_out(name) as folder:
        assert (folder / "src/luftpause/__init__.py").exists()
    assert not folder.exists()


@CHECKOUT
@pytest.mark.parametrize("revision", ["no-such-branch", "--force"])
def test_what_is_no_commit_is_refused(revision: str) -> None:
    with pytest.raises(RevisionError, match="no commit"):
        named(revision)


@CHECKOUT
def test_a_commit_before_the_bench_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BENCH", "src/luftpause/testkit/bench/of_tomorrow.py")
    with pytest.raises(RevisionError, match="has no bench"):
        named("HEAD")


@CHECKOUT
def test_a_shallow_clone_says_that_it_has_the_newest_commits_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = ["git", "clone", "--quiet", "--depth", "1", "--no-checkout", ROOT.as_uri(), str(tmp_path / "clone")]
    subprocess.run(clone, check=True)
    monkeypatch.setattr(module, "ROOT", tmp_path / "clone")
    with pytest.raises(RevisionError, match=r"no commit 'HEAD~1'; .* git fetch --unshallow"):
        named("HEAD~1")


def test_outside_a_checkout_no_commit_can_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOT", tmp_path)
    with pytest.raises(RevisionError, match="from a git checkout"):
        named("HEAD")


def a_bench(folder: Path, does: str) -> None:
    """Write a package `luftpause` whose command does this."""
    (folder / "src" / "luftpause").mkdir(parents=True)
    (folder / "src" / "luftpause" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "src" / "luftpause" / "__main__.py").write_text(does, encoding="utf-8")


def test_a_commits_own_bench_is_asked_for_each_of_ours(tmp_path: Path) -> None:
    stored = tmp_path / "stored.json"
    stored.write_bytes(to_json(result(turn_admission=[4.0])))
    asked = tmp_path / "asked"
    a_bench(
        tmp_path,
        "import pathlib, shutil, sys\n"
        f"pathlib.Path({str(asked)!r}).write_text(' '.join(sys.argv[1:-1]))\n"
        f"shutil.copy({str(stored)!r}, sys.argv[-1])\n",
    )
    noted = Noted()
    (arm,) = measured_at(tmp_path, "abc", ("small", ["turn-admission"]), ["--seeds", "1"], noted)
    assert arm.arm == "turn-admission@abc"
    assert asked.read_text(encoding="utf-8") == "bench small --seeds 1 --arms turn-admission --json"
    assert noted.told == ["begins small: turn-admission@abc", "done small: turn-admission@abc"]


def test_a_commit_that_cannot_measure_says_why(tmp_path: Path) -> None:
    a_bench(tmp_path, "raise SystemExit('No such command')")
    with pytest.raises(RevisionError, match="abc cannot be measured: No such command"):
        measured_at(tmp_path, "abc", ("small", ["turn-admission"]), [], Noted())


def test_whoever_is_stopped_stops_the_others_bench_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = tmp_path / "ended"
    a_bench(
        tmp_path,
        "import pathlib, time\n"
        "try:\n"
        "    pathlib.Path('begun').touch()\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        f"    pathlib.Path({str(ended)!r}).touch()\n",
    )
    monkeypatch.chdir(tmp_path)
    communicate = subprocess.Popen.communicate
    patience: list[float | None] = []

    def interrupted(process: subprocess.Popen[str], timeout: float | None = None) -> tuple[str, str]:
        patience.append(timeout)
        if timeout is None:
            wait_until((tmp_path / "begun").exists, timeout_s=20, what="the bench")
            raise KeyboardInterrupt
        return communicate(process, timeout=timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measured_at(tmp_path, "abc", ("small", ["turn-admission"]), [], Noted())
    assert ended.exists()
    assert patience[0] is None
    assert patience[1] is not None


def test_more_arms_get_verdicts_of_their_own() -> None:
    now = result(sglang_router_tuned=[10.0, 10.0], turn_admission=[16.0, 18.0])
    then = [replace(each, arm="turn-admission@abc") for each in now.arms if each.arm == "turn-admission"]
    both = with_arms(now, then, replace(SMALL, claims=(ASKED,)))
    assert [verdict.arm for verdict in both.verdicts] == ["turn-admission", "turn-admission@abc"]
    assert {verdict.value for verdict in both.verdicts} == {1.7}
    assert len(both.arms) == 3


def test_arms_of_several_commits_are_no_rivals_of_each_other() -> None:
    found = result(sglang_router_tuned=[10.0], turn_admission=[16.0])
    for name in ("abc", "def"):
        then = [replace(each, arm=f"turn-admission@{name}") for each in found.arms if each.arm == "turn-admission"]
        found = with_arms(found, then, replace(SMALL, claims=(ASKED,)))
    assert [verdict.arm.partition("@")[2] for verdict in found.verdicts] == ["", "abc", "def"]
    assert {verdict.rival for verdict in found.verdicts} == {"sglang-router-tuned"}
