"""A disk that is full for real: by a limit on the length of files, and by a file system of a few pages."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import pytest

PROGRAM = Path(__file__).with_name("greedy_runtime.py")


class Told(TypedDict):
    found: list[str]
    answered: list[str]
    refusal: str
    again: str
    failure: str
    waiting: str


def greedy(folder: Path, most: int, file_bytes_max: int = 0) -> Told:
    path = os.pathsep.join([str(PROGRAM.parent.parent), *sys.path])
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), str(most), str(file_bytes_max)],
        capture_output=True,
        timeout=50,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ended.returncode == 0, ended.stderr.decode()
    told: Told = json.loads(ended.stdout)
    return told


def check_refused(told: Told, why: str) -> None:
    assert why in told["refusal"]
    for words in (told["refusal"], told["again"], told["failure"], told["waiting"]):
        assert "start the runtime again once the disk has room" in words


def check_nothing_lost(folder: Path, answered: list[str]) -> None:
    later = greedy(folder, 1)
    assert sorted(later["found"]) == sorted(answered), "exactly what was answered is there"
    assert (len(later["answered"]), later["refusal"], later["failure"]) == (1, "", "")


def test_a_journal_that_may_not_grow_refuses_in_words_and_loses_nothing(tmp_path: Path) -> None:
    told = greedy(tmp_path, 1000, file_bytes_max=20_000)
    assert 5 < len(told["answered"]) < 100
    check_refused(told, "File too large")
    check_nothing_lost(tmp_path, told["answered"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = shutil.which("mount")
    folder = tmp_path / "small"
    folder.mkdir()
    command = [str(mount), "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    if mount is None or os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_and_a_start_after_making_room_goes_on(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(64 * 1024))
    told = greedy(small_disk, 1000)
    assert 5 < len(told["answered"]) < 200
    check_refused(told, "No space left on device")
    still_full = greedy(small_disk, 1)
    assert sorted(still_full["found"]) == sorted(told["answered"])
    (small_disk / "ballast").unlink()
    check_nothing_lost(small_disk, told["answered"] + still_full["answered"])
