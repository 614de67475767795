"""Processes that outlived their launcher are found by their mark, and nobody else's is touched."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from luftpause.adapters import process_table
from luftpause.adapters.process_host.marks import MARK_BYTES_MAX, Mark, ProcessMarks, carriers_of, end_carriers
from luftpause.adapters.process_host.output import output_pipe
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
        mark = msgspec.structs.replace(mark, **{"owner_started": 1, **changes})
        path.write_bytes(msgspec.json.encode(mark))
        path.rename(folder / f"{mark.word}.mark")


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


@pytest.mark.parametrize("change", [{"boot": "another"}, {"word": "0" * 32}])
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


@pytest.mark.parametrize("word", ["", "x", "0" * 31, "A" * 32])
def test_a_word_that_was_never_made_means_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, word: str
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a process was signalled")

    monkeypatch.setattr("luftpause.adapters.process_host.marks.signal.pidfd_send_signal", refuse)
    boot = process_table.boot_id()
    forged = Mark(name="m-1", word=word, pid=1, started=1, boot=boot, owner_pid=os.getpid(), owner_started=1)
    (tmp_path / f"{word}.mark").write_bytes(msgspec.json.encode(forged))
    assert carriers_of({word}) == {}
    assert ProcessMarks(tmp_path).claim() == ()
    assert [record.message for record in caplog.records] == ["process_mark_strange"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def link(path: Path) -> None:
    path.rename(path.with_suffix(".away"))
    path.symlink_to(path.with_suffix(".away"))


def swell(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" " * MARK_BYTES_MAX)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def rename_inside(path: Path) -> None:
    mark = msgspec.json.decode(path.read_bytes(), type=Mark)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(mark, word="0" * 32)))


@pytest.mark.parametrize("damage", [cut, link, swell, pipe, rename_inside])
def test_a_damaged_mark_still_leads_to_its_process_which_is_ended(
    tmp_path: Path, orphans: list[subprocess.Popen[bytes]], damage: Callable[[Path], None]
) -> None:
    marks = ProcessMarks(tmp_path)
    word = marks.new_word()
    orphan, bystander = start(word), start(marks.new_word())
    orphans += [orphan, bystander]
    assert marks.new_output(word) is not None
    marks.keep("m-1", word, orphan.pid)
    disown(tmp_path)
    damage(tmp_path / f"{word}.mark")
    (mark,) = marks.claim()
    assert (mark.word, mark.survives) == (word, False)
    marks.end((mark,), 5.0)
    assert orphan.wait(5) == -15
    assert bystander.poll() is None
    assert [path.suffix for path in tmp_path.iterdir() if path.suffix != ".away"] == []


def test_a_damaged_mark_of_a_launcher_that_reads_its_process_is_left_to_it(
    tmp_path: Path, orphans: list[subprocess.Popen[bytes]]
) -> None:
    marks = ProcessMarks(tmp_path)
    word = marks.new_word()
    orphans.append(start(word))
    output = marks.new_output(word)
    marks.keep("m-1", word, orphans[0].pid)
    cut(tmp_path / f"{word}.mark")
    own, given = output_pipe(output)
    try:
        assert marks.claim() == ()
    finally:
        os.close(own)
        os.close(given)
    assert len(marks.claim()) == 1


def test_a_damaged_mark_without_a_process_goes(tmp_path: Path) -> None:
    (tmp_path / f"{'0' * 32}.mark").write_bytes(b"{")
    assert ProcessMarks(tmp_path).claim() == ()
    assert list(tmp_path.iterdir()) == []


def test_what_another_only_ends_is_claimed_too_and_survives_no_more(
    tmp_path: Path, orphans: list[subprocess.Popen[bytes]]
) -> None:
    marks = ProcessMarks(tmp_path)
    word = marks.new_word()
    orphans.append(start(word))
    assert marks.new_output(word) is not None
    marks.keep("m-1", word, orphans[0].pid)
    disown(tmp_path)
    (ending,) = marks.claim(ending=True)
    (mark,) = ProcessMarks(tmp_path).claim()
    assert ending == mark
    assert (mark.name, mark.owner_pid, mark.survives) == ("m-1", os.getpid(), False)


def test_a_mark_says_whether_it_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    assert not ProcessMarks(tmp_path / "file" / "marks").keep("m-1", "w", os.getpid())
    marks = ProcessMarks(tmp_path / "marks")
    assert not marks.keep("m" * MARK_BYTES_MAX, "w", os.getpid())
    assert [record.message for record in caplog.records] == ["process_mark_lost"] * 2
    (tmp_path / "marks" / "w.part").symlink_to(tmp_path / "file")
    assert marks.keep("m-1", "w", os.getpid())
    assert (tmp_path / "file").read_bytes() == b""
    assert [path.name for path in (tmp_path / "marks").iterdir()] == ["w.mark"]


def test_all_that_carry_a_word_are_killed_and_others_are_not(orphans: list[subprocess.Popen[bytes]]) -> None:
    marks = ProcessMarks(None)
    word = marks.new_word()
    orphans += [start(word), start(word, "ignores"), start(marks.new_word())]
    assert end_carriers(word)
    assert [orphan.wait(5) for orphan in orphans[:2]] == [-9, -9]
    assert orphans[2].poll() is None
    assert end_carriers(word)


def test_without_a_folder_nothing_is_remembered() -> None:
    marks = ProcessMarks(None)
    assert not marks.keep("m-1", marks.new_word(), os.getpid())
    marks.drop("w")
    assert marks.stop_orphans(grace_s=0.1) == ()
