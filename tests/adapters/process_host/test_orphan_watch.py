"""What a killed launcher left lives on as long as allowed, and no longer."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from luftpause.adapters import process_table
from luftpause.adapters.process_host.marks import ProcessMarks
from luftpause.adapters.process_host.orphan_watch import watched
from luftpause.adapters.tether import WORD_VARIABLE

pytestmark = pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells of its processes here")
WAIT_S = 25.0
LAUNCHER = """
import os, signal, subprocess, sys
from pathlib import Path
from luftpause.adapters.process_host.orphan_watch import watched
from luftpause.adapters.process_host.marks import ProcessMarks
from luftpause.adapters.tether import WORD_VARIABLE
marks = ProcessMarks(Path(sys.argv[1]))
with watched(marks, float(sys.argv[2]), 1.0):
    word = marks.new_word()
    argv = [sys.executable, "-c", "import signal; signal.pause()"]
    engine = subprocess.Popen(argv, env={**os.environ, WORD_VARIABLE: word}, stdout=subprocess.DEVNULL)
    marks.keep("m-1", word, engine.pid)
    print(engine.pid, flush=True)
    if sys.argv[3:] == ["ends"]:
        engine.kill()
        engine.wait()
        marks.drop(word)
    else:
        signal.pause()
"""


def start(folder: Path, wait_s: float, *words: str) -> tuple[subprocess.Popen[bytes], int]:
    argv = [sys.executable, "-c", LAUNCHER, str(folder), str(wait_s), *words]
    launcher = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert launcher.stdout is not None
    return launcher, int(launcher.stdout.readline())


def watches(folder: Path) -> list[int]:
    own = {"luftpause.adapters.process_host.orphan_watch", str(folder)}
    return [row.pid for row in process_table.rows() if own <= set(process_table.command_of(row.pid))]


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while process_table.row_of(pid) is not None:
        assert time.monotonic() < deadline


def test_engines_of_a_killed_launcher_are_ended_after_the_wait_if_nobody_adopts_them(tmp_path: Path) -> None:
    launcher, engine = start(tmp_path, 0.1)
    (watch,) = watches(tmp_path)
    with launcher:
        launcher.kill()
    until_gone(engine)
    until_gone(watch)
    assert list(tmp_path.iterdir()) == []


def test_engines_that_the_next_launcher_has_are_left_to_it(tmp_path: Path) -> None:
    launcher, engine = start(tmp_path, 0.5)
    (watch,) = watches(tmp_path)
    with launcher:
        launcher.kill()
    (mark,) = ProcessMarks(tmp_path).claim()
    until_gone(watch)
    try:
        assert process_table.row_of(engine) is not None
    finally:
        ProcessMarks(tmp_path).end((mark,), 1.0)


def test_a_watch_that_is_killed_is_started_again(tmp_path: Path) -> None:
    launcher, engine = start(tmp_path, 0.1)
    (first,) = watches(tmp_path)
    with launcher:
        os.kill(first, signal.SIGKILL)
        deadline = time.monotonic() + WAIT_S
        while watches(tmp_path) in ([], [first]):
            assert time.monotonic() < deadline
        launcher.kill()
    until_gone(engine)


def test_a_launcher_that_ends_in_order_leaves_no_watch(tmp_path: Path) -> None:
    launcher, _ = start(tmp_path, 600.0, "ends")
    with launcher:
        assert launcher.wait(WAIT_S) == 0
    assert watches(tmp_path) == []


def test_nothing_is_watched_that_outlives_nobody() -> None:
    children = {row.pid for row in process_table.rows() if row.parent == os.getpid()}
    with watched(None, 1.0, 1.0):
        assert {row.pid for row in process_table.rows() if row.parent == os.getpid()} <= children
    assert WORD_VARIABLE not in os.environ


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_engines_whose_marks_are_gone_are_ended_at_once_since_nobody_could_find_them(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "marks"
    launcher, engine = start(folder, 600.0)
    (watch,) = watches(folder)
    with launcher:
        if how == "moved":
            folder.rename(tmp_path / "elsewhere")
        else:
            shutil.rmtree(folder)
        if how == "replaced":
            folder.write_text("a file")
        launcher.kill()
    try:
        until_gone(engine)
        deadline = time.monotonic() + WAIT_S
        while how != "replaced" and list(folder.iterdir()):
            assert time.monotonic() < deadline
    finally:
        os.kill(watch, signal.SIGKILL)


def test_a_watch_that_was_started_again_knows_of_marks_from_before(tmp_path: Path) -> None:
    folder = tmp_path / "marks"
    launcher, engine = start(folder, 600.0)
    (first,) = watches(folder)
    with launcher:
        os.kill(first, signal.SIGKILL)
        deadline = time.monotonic() + WAIT_S
        while not (others := [each for each in watches(folder) if each != first]):
            assert time.monotonic() < deadline
        second = others[0]
        shutil.rmtree(folder)
        launcher.kill()
    try:
        until_gone(engine)
    finally:
        os.kill(second, signal.SIGKILL)


def test_a_watch_that_listens_no_more_is_ended_and_the_next_one_told(tmp_path: Path) -> None:
    """Its launcher never waits for it."""
    marks = ProcessMarks(tmp_path / "marks")
    with watched(marks, 600.0, 1.0):
        deadline = time.monotonic() + WAIT_S
        while not (found := watches(tmp_path / "marks")):  # it has its own words only once its program runs
            assert time.monotonic() < deadline
        (first,) = found
        os.kill(first, signal.SIGSTOP)
        for _ in range(1000):
            marks.keep("m-1", marks.new_word(), os.getpid())
        until_gone(first)
        while watches(tmp_path / "marks") in ([], [first]):
            assert time.monotonic() < deadline
    assert watches(tmp_path / "marks") == []


def test_engines_whose_marks_go_while_they_wait_for_the_next_launcher_are_ended_too(tmp_path: Path) -> None:
    folder = tmp_path / "marks"
    launcher, engine = start(folder, 600.0)
    (watch,) = watches(folder)
    with launcher:
        launcher.kill()
    shutil.rmtree(folder)
    try:
        until_gone(engine)
    finally:
        os.kill(watch, signal.SIGKILL)
