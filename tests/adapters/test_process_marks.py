"""Processes that outlived their launcher are found by their mark, and nobody else's is touched."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from luftpause.adapters import process_table
from luftpause.adapters.process_marks import Mark, ProcessMarks
from luftpause.adapters.tether import WORD_VARIABLE

pytestmark = pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells of its processes here")
SLEEP = """
import signal, sys, time
if sys.argv[1:]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(flush=True)
time.sleep(60)
"""


@pytest.fixture
def orphans() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def start(word: str, *args: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, WORD_VARIABLE: word}
    process = subprocess.Popen([sys.executable, "-c", SLEEP, *args], env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def disown(folder: Path, **changes: object) -> None:
    """Make a mark look as if its launcher were gone."""
    for path in folder.glob("*.mark"):
        mark = msgspec.json.decode(path.read_bytes(), type=Mark)
        path.write_bytes(msgspec.json.encode(msgspec.structs.replace(mark, **{"owner_started": 1, **changes})))


@pytest.mark.parametrize("stubborn", [(), ("ignores",)])
def test_an_orphan_is_ended_and_its_mark_with_it(
    tmp_path: Path, orphans: list[subprocess.Popen[bytes]], stubborn: tuple[str, ...]
) -> None:
    marks = ProcessMarks(tmp_path / "marks")
    word = marks.new_word()
    orphan, bystander = start(word, *stubborn), start("another word")
    orphans += [orphan, bystander]
    marks.keep("m-1", word, orphan.pid)
    disown(tmp_path / "marks")
    assert marks.stop_orphans(grace_s=0.2) == ("m-1",)
    assert orphan.wait(5) == (-9 if stubborn else -15)
    assert bystander.poll() is None
    assert list((tmp_path / "marks").iterdir()) == []
    assert marks.stop_orphans(grace_s=0.2) == ()


def test_what_a_living_launcher_started_is_left_alone(tmp_path: Path, orphans: list[subprocess.Popen[bytes]]) -> None:
    marks = ProcessMarks(tmp_path)
    word = marks.new_word()
    engine = start(word)
    orphans.append(engine)
    marks.keep("m-1", word, engine.pid)
    assert ProcessMarks(tmp_path).stop_orphans(grace_s=0.2) == ()
    assert engine.poll() is None
    assert len(list(tmp_path.iterdir())) == 1
    marks.drop(word)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"boot": "another"}, {"word": "none has it"}])
def test_a_process_that_has_the_id_but_not_the_word_is_somebody_elses(
    tmp_path: Path, orphans: list[subprocess.Popen[bytes]], change: dict[str, str]
) -> None:
    marks = ProcessMarks(tmp_path)
    word = marks.new_word()
    stranger = start(word)
    orphans.append(stranger)
    marks.keep("m-1", word, stranger.pid)
    disown(tmp_path, **change)
    assert marks.stop_orphans(grace_s=0.2) == ()
    assert stranger.poll() is None
    assert list(tmp_path.iterdir()) == [], "a mark that leads nowhere goes"


def test_marks_that_nobody_can_read_stop_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.mark").write_bytes(b"{")
    (tmp_path / "b.mark").write_bytes(b"x" * 5000)
    (tmp_path / "c.mark").symlink_to("/etc/passwd")
    assert ProcessMarks(tmp_path).stop_orphans(grace_s=0.1) == ()
    assert [record.message for record in caplog.records] == ["process_mark_unreadable"]
    (tmp_path / "file").touch()
    ProcessMarks(tmp_path / "file" / "marks").keep("m-1", "w", os.getpid())
    assert caplog.records[-1].message == "process_mark_lost"


def test_without_a_folder_nothing_is_remembered() -> None:
    marks = ProcessMarks(None)
    marks.keep("m-1", marks.new_word(), os.getpid())
    marks.drop("w")
    assert marks.stop_orphans(grace_s=0.1) == ()
