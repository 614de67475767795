"""Real processes on a real disk, killed with SIGKILL: after so many signs of life, or at any moment."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from crash.living_runtime import LoggedOutside
from crash.three_runs import UNINTERRUPTED, check_answers

PROGRAM = Path(__file__).with_name("living_runtime.py")
SIGNS = 15
"""What an uninterrupted life tells: three handles, eight calls that acted at least, an approval and a message."""
LIFE_S = 1.5
SEEDS = [1, 2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 40))]


@contextmanager
def living(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    path = os.pathsep.join([str(PROGRAM.parent.parent), *sys.path])
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), "0.02"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        yield process


def kill_after_signs(folder: Path, signs: int) -> None:
    with living(folder) as process:
        assert process.stdout is not None
        for _ in range(signs):
            if not process.stdout.readline():
                break
        process.kill()


def kill_after_time(folder: Path, seconds: float) -> None:
    with living(folder) as process:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()


def live_on(folder: Path) -> None:
    """The last life, which nobody ends: it must come to what was wanted."""
    with living(folder) as process:
        told, complaints = process.communicate(timeout=50)
    assert process.returncode == 0, complaints
    ends = json.loads(told.splitlines()[-1])["ends"]
    assert {task: end["status"] for task, end in ends.items()} == dict.fromkeys(UNINTERRUPTED, "Finished")
    outside = LoggedOutside(folder / "outside")
    for task, usual in UNINTERRUPTED.items():
        check_answers(ends[task]["result"], usual)
    unsafe = [key for tool, key in outside.effects if tool == "pay"]
    assert len(set(unsafe)) == len(unsafe), "a call that may have acted was made again"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_runtime_that_is_killed_again_and_again_keeps_its_promises(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    for _ in range(3):
        if chance.random() < 0.5:
            kill_after_signs(tmp_path, chance.randint(1, SIGNS))
        else:
            kill_after_time(tmp_path, chance.uniform(0.3, LIFE_S))
    live_on(tmp_path)


@pytest.mark.parametrize("signs", [5, *(pytest.param(at, marks=pytest.mark.nightly) for at in range(1, SIGNS + 1))])
def test_a_kill_after_any_sign_of_life_is_outlived(tmp_path: Path, signs: int) -> None:
    kill_after_signs(tmp_path, signs)
    live_on(tmp_path)
