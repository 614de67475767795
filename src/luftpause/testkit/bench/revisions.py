"""Other commits of luftpause as more arms: each is checked out beside this one and runs its own bench.

Its scenarios are its own, too: where a workload has changed in between, the figures compare no more.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

import msgspec

from luftpause.testkit.bench.claims import judge
from luftpause.testkit.bench.machine import ROOT
from luftpause.testkit.bench.results import AT, ArmResult, WorkloadResult, arm_results, from_json, samples_of
from luftpause.testkit.bench.workloads import OURS, OWN, Workload


class Steps(Protocol):
    """Told what is measured, one after the other."""

    def begins(self, what: str) -> None:
        """It is measured now."""
        ...

    def done(self, what: str) -> None:
        """It was."""
        ...


_BENCH: Final = "src/luftpause/testkit/bench/bench.py"
_STOP_S: Final = 30.0
"""So long a commit's own bench has to end its engines when we are stopped."""


class RevisionError(Exception):
    """A commit cannot be measured. Its text says why."""


class _GitError(RevisionError):
    """Git says no."""


def named(revision: str) -> str:
    """Return the short name of a commit that can be measured.

    Raises:
        RevisionError: there is no such commit, it has no bench, or this is no checkout.
    """
    if revision.startswith("-"):
        raise RevisionError(f"no commit {revision!r}")
    try:
        name = _said("rev-parse", "--short=10", "--verify", f"{revision}^{{commit}}")
    except _GitError as refused:
        is_shallow = _said("rev-parse", "--is-shallow-repository") == "true"
        way = "this clone has the newest only: git fetch --unshallow" if is_shallow else "git log --oneline lists them"
        raise RevisionError(f"no commit {revision!r}; {way}") from refused
    try:
        _said("cat-file", "-e", f"{name}:{_BENCH}")
    except _GitError as refused:
        raise RevisionError(f"{name} has no bench: it is older than {_BENCH}") from refused
    return name


@contextmanager
def checked_out(name: str) -> Iterator[Path]:
    """Check a commit out into a folder of its own, for the length of a block.

    Raises:
        RevisionError: git cannot.
    """
    with tempfile.TemporaryDirectory(prefix="luftpause-rev-") as temporary:
        folder = Path(temporary) / name
        _said("worktree", "add", "--detach", str(folder), name)
        try:
            yield folder
        finally:
            _said("worktree", "remove", "--force", str(folder))


def _said(*arguments: str) -> str:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        raise RevisionError("other commits can only be measured from a git checkout")
    answer = subprocess.run(
        [git, "-C", str(ROOT), *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )
    if answer.returncode:
        raise _GitError(f"git {arguments[0]}: {answer.stderr.strip()}")
    return answer.stdout.strip()


def measured_at(
    folder: Path, name: str, chosen: tuple[str, Sequence[str]], options: Sequence[str], steps: Steps
) -> tuple[ArmResult, ...]:
    """Return what the chosen arms come to that a commit has, named after it.

    Args:
        folder: where it is checked out.
        name: of the commit.
        chosen: the workload to measure, and arms of ours.
        options: of its `bench` command, arms and output excepted.
        steps: is told of each arm.

    Raises:
        RevisionError: it has no such bench, or none of our arms.
    """
    found: list[ArmResult] = []
    why = ""
    workload, arms = chosen
    for arm in arms:
        what = f"{workload}: {arm}@{name}"
        steps.begins(what)
        file = folder / f"{arm}.json"
        command = [sys.executable, "-m", "luftpause", "bench", workload, *options]
        env = {**os.environ, "PYTHONPATH": str(folder / "src")}
        said = _asked([*command, "--arms", arm, "--json", str(file)], env)
        steps.done(what)
        if not file.exists():
            why = said.strip()[-300:]
            continue
        try:
            result = from_json(file.read_bytes())
        except msgspec.DecodeError as other:
            raise RevisionError(f"{name} writes results of another kind: {other}") from other
        found += [replace(each, arm=f"{each.arm}{AT}{name}") for each in result.arms]
    if not found:
        raise RevisionError(f"{name} cannot be measured: {why or 'it has none of our arms'}")
    return tuple(found)


def _asked(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Carry a command out and return what it says on standard error. If we are stopped meanwhile, it is first."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        return process.communicate()[1]
    except BaseException:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        raise


def with_arms(result: WorkloadResult, more: Sequence[ArmResult], workload: Workload) -> WorkloadResult:
    """Return the result with more arms of ours, and all verdicts anew."""
    arms = (*result.arms, *more)
    names = [each.arm for each in arms if AT in each.arm]
    samples = samples_of(arms)
    verdicts = judge(workload.claims, samples, (*OURS, *names), (*OWN, *names), noisy=result.engine != "sim")
    return replace(result, arms=arm_results(samples), verdicts=tuple(verdicts))
