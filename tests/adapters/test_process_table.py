"""What Linux tells of processes, told right."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from luftpause.adapters import process_table as table

pytestmark = pytest.mark.skipif(not table.is_known(), reason="only Linux tells of its processes here")
SERVE = (
    "import socket, sys, subprocess\n"
    "s = socket.create_server(('127.0.0.1', 0))\n"
    "print(s.getsockname()[1], flush=True)\n"
    "sys.stdin.read()\n"
)
WRAP = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]])\n"


@contextmanager
def serving(*argv: str, session: bool = True) -> Iterator[tuple[int, int]]:
    """A process, in a session of its own, that listens itself or by a child. Yields its id and the port."""
    process = subprocess.Popen(
        [sys.executable, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=session
    )
    try:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
    finally:
        process.communicate()


def test_a_process_that_listens_itself_is_told_from_a_stranger() -> None:
    with serving("-c", SERVE) as (pid, port), serving("-c", SERVE) as (other, elsewhere):
        assert table.listens(pid, port) is True
        assert table.listens(pid, elsewhere) is False
        assert table.listens(other, port) is False
        assert table.listens(pid, 1) is False


def test_a_child_that_listens_counts_for_its_parent() -> None:
    with serving("-c", WRAP, SERVE) as (pid, port):
        assert table.listens(pid, port) is True
        assert len(table.family_of(pid)) == 2
        assert table.resident_bytes(pid) > 2**20


WORK = "sum(range(5_000_000))\n"


@pytest.mark.parametrize("argv", [("-c", WORK + SERVE), ("-c", WRAP, WORK + SERVE)], ids=["itself", "a child"])
def test_who_works_has_taken_time_and_who_waits_takes_none(argv: tuple[str, ...]) -> None:
    with serving(*argv) as (pid, _):
        worked_s = table.worked_s(pid)
        assert worked_s is not None
        assert worked_s > 0.01
        assert table.worked_s(pid) == pytest.approx(worked_s, abs=0.02)


def test_nobody_can_tell_of_what_may_not_be_seen(tmp_path: Path) -> None:
    assert table.worked_s(1, tmp_path) is None
    assert table.listens(1, 80, tmp_path) is None
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text("head\n")
    assert table.listens(1, 80, tmp_path) is None
    assert table.environment_of(1, tmp_path) is None
    assert table.resident_bytes(1, tmp_path) == 0
    assert list(table.rows(tmp_path / "none")) == []
    assert table.boot_id(tmp_path) == ""


def test_a_process_is_known_by_its_start_and_a_dead_one_is_none() -> None:
    own = table.row_of(os.getpid())
    assert own is not None
    assert (own.pid, own.parent) == (os.getpid(), os.getppid())
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert table.row_of(child.pid) is None, "it only waits to be reaped"
    child.wait()
    assert table.row_of(child.pid) is None


def test_a_programs_name_may_hold_anything(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "stat").write_text("7 (a) S b) S 1 7 7 0 " + "0 " * 14 + "12345 0 0\n")
    assert table.row_of(7, tmp_path) == table.ProcessRow(pid=7, parent=1, session=7, started=12345)
    (folder / "stat").write_text("7 (short) S 1\n")
    assert table.row_of(7, tmp_path) is None


def test_an_address_of_the_newer_kind_is_seen_too() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        assert table.listens(os.getpid(), server.getsockname()[1]) is True


def test_who_listens_on_a_port_is_found_with_its_command() -> None:
    with serving("-c", SERVE) as (pid, port):
        assert table.listener_on(port) == pid
        assert table.command_of(pid)[:2] == (sys.executable, "-c")
    assert table.listener_on(port) is None
    assert table.command_of(pid) == ()


def test_whether_a_process_has_a_file_open_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "held"
    with path.open("w"):
        assert table.has_open(os.getpid(), path)
    assert not table.has_open(os.getpid(), path)
    assert not table.has_open(2**30, path)
