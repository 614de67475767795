"""Other commits of luftpause as more arms: each is checked out beside this one and runs its own bench.

Its scenarios are its own, too: where a workload has changed in between, the figures compare no more.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from luftpause.testkit.bench.claims import judge
from luftpause.testkit.bench.machine import ROOT
from luftpause.testkit.bench.results import ArmResult, WorkloadResult, arm_results, from_json, samples_of
from luftpause.testkit.bench.workloads import OURS, OWN, Workload


class RevisionError(Exception):
    """A commit cannot be measured. Its text says why."""


@contextmanager
def checked_out(revision: str) -> Iterator[tuple[str, Path]]:
    """Check a commit out into a folder of its own, for the length of a block; give its short name and the folder.

    Raises:
        RevisionError: there is no such commit, or this is no checkout.
    """
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        raise RevisionError("other commits can only be measured from a git checkout")
    if revision.startswith("-"):
        raise RevisionError(f"no commit {revision!r}")
    name = _said(git, "rev-parse", "--short=10", "--verify", f"{revision}^{{commit}}")
    with tempfile.TemporaryDirectory(prefix="luftpause-rev-") as temporary:
        folder = Path(temporary) / name
        _said(git, "worktree", "add", "--detach", str(folder), name)
        try:
            yield name, folder
        finally:
            _said(git, "worktree", "remove", "--force", str(folder))


def _said(git: str, *arguments: str) -> str:
    answer = subprocess.run(
        [git, "-C", str(ROOT), *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )
    if answer.returncode:
        raise RevisionError(f"git {arguments[0]}: {answer.stderr.strip()}")
    return answer.stdout.strip()


def measured_at(folder: Path, name: str, workload: Workload, options: Sequence[str]) -> tuple[ArmResult, ...]:
    """Return what the arms of ours come to that a commit has, named after it.

    Args:
        folder: where it is checked out.
        name: of the commit.
        workload: to measure.
        options: of its `bench` command, arms and output excepted.

    Raises:
        RevisionError: it has no such bench, or none of our arms.
    """
    found: list[ArmResult] = []
    why = ""
    for arm in [arm for arm in OURS if arm in workload.arms]:
        file = folder / f"{arm}.json"
        command = [sys.executable, "-m", "luftpause", "bench", workload.name, *options]
        env = {**os.environ, "PYTHONPATH": str(folder / "src")}
        answer = subprocess.run(
            [*command, "--arms", arm, "--json", str(file)], env=env, capture_output=True, text=True, check=False
        )
        if not file.exists():
            why = answer.stderr.strip()[-300:]
            continue
        try:
            result = from_json(file.read_bytes())
        except msgspec.DecodeError as other:
            raise RevisionError(f"{name} writes results of another kind: {other}") from other
        found += [replace(each, arm=f"{each.arm}@{name}") for each in result.arms]
    if not found:
        raise RevisionError(f"{name} cannot be measured: {why or 'it has none of our arms'}")
    return tuple(found)


def with_arms(result: WorkloadResult, more: Sequence[ArmResult], workload: Workload) -> WorkloadResult:
    """Return the result with more arms of ours, and all verdicts anew."""
    arms = (*result.arms, *more)
    names = [each.arm for each in more]
    samples = samples_of(arms)
    verdicts = judge(workload.claims, samples, (*OURS, *names), (*OWN, *names))
    return replace(result, arms=arm_results(samples), verdicts=tuple(verdicts))
