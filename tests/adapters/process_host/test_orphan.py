"""Processes that another launcher left: told apart to the last variable, kept with all that they write, ended whole."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from luftpause.adapters import process_table
from luftpause.adapters.process_host.host import LocalProcessHost
from luftpause.adapters.process_host.marks import MARK_BYTES_MAX, Mark, ProcessMarks
from luftpause.adapters.process_host.orphan import Orphan
from luftpause.core.processes.actions import StopSignal
from luftpause.ports.processes import Launch, ProcessEnd
from services.launcher.launcher_world import poll
from stories.set_ups import free_port

pytestmark = pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells of its processes here")
T = TypeVar("T")
ENGINE = """
import os, signal, socket, subprocess, sys, threading, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
if "forks" in sys.argv:
    print("child", subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid, flush=True)
def talk(*_):
    print("heard", os.getpid(), flush=True)
signal.signal(signal.SIGUSR1, talk)
print("up", flush=True)
while True:
    time.sleep(60)
"""
LAUNCHER = """
import asyncio, os, sys
from pathlib import Path
from luftpause.adapters.process_host.host import LocalProcessHost
from luftpause.adapters.process_host.marks import ProcessMarks
from luftpause.ports.processes import Launch
async def main():
    folder, name, port, *argv = sys.argv[1:]
    host = LocalProcessHost(os.environ, marks=ProcessMarks(Path(folder)), outlived=True)
    process = host.start(Launch(name=name, argv=tuple(argv), port=int(port)))
    while "up" not in process.tail():
        await asyncio.sleep(0.01)
    print(process.pid, flush=True)
    await process.ended()
asyncio.run(main())
"""


def run(work: Coroutine[None, None, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(25):
            return await work

    return asyncio.run(bounded())


def launch_of(*words: str) -> Launch:
    port = free_port()
    return Launch(name="m-1", argv=(sys.executable, "-c", ENGINE, str(port), *words), port=port)


def left_by_a_killed_launcher(folder: Path, launch: Launch, env: Mapping[str, str] | None = None) -> int:
    """Return the id of a process whose launcher was killed."""
    argv = [sys.executable, "-c", LAUNCHER, str(folder), launch.name, str(launch.port), *launch.argv]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ, **(env or {})}) as launcher:
        assert launcher.stdout is not None
        pid = int(launcher.stdout.readline())
        launcher.kill()
    return pid


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LocalProcessHost]:
    """Whatever a test leaves behind is ended."""
    marks = ProcessMarks(tmp_path / "marks")
    yield LocalProcessHost(os.environ, marks=marks, outlived=True)
    for path in (tmp_path / "marks").glob("*.mark"):
        mark = msgspec.json.decode(path.read_bytes(), type=Mark)
        path.write_bytes(msgspec.json.encode(msgspec.structs.replace(mark, owner_started=1)))
    marks.stop_orphans(grace_s=0.1)


def only(host: LocalProcessHost) -> Orphan:
    (orphan,) = host.left_behind()
    return orphan


def test_what_a_launch_would_start_is_told_from_all_else(tmp_path: Path, host: LocalProcessHost) -> None:
    launch = launch_of()
    pid = left_by_a_killed_launcher(tmp_path / "marks", launch)
    orphan = only(host)
    assert process_table.row_of(pid) is not None, "it outlived its launcher"
    assert (orphan.name, orphan.port, orphan.listens()) == ("m-1", launch.port, True)
    assert orphan.is_of(launch)
    assert not orphan.is_of(replace(launch, argv=(*launch.argv, "--more")))
    assert not orphan.is_of(replace(launch, env={"OMP_NUM_THREADS": "7"}))
    assert not orphan.is_of(replace(launch, host="127.0.0.2"))
    assert host.left_behind() == (), "it is ours now, and we are not gone"
    os.kill(pid, signal.SIGKILL)
    while process_table.row_of(pid) is not None:
        pass
    assert not orphan.is_of(launch)


def test_one_that_was_started_with_other_variables_of_ours_is_another(tmp_path: Path, host: LocalProcessHost) -> None:
    launch = launch_of()
    left_by_a_killed_launcher(tmp_path / "marks", launch, env={"CUDA_VISIBLE_DEVICES": "1"})
    assert not only(host).is_of(launch)


def test_an_adopted_process_is_heard_on_and_ends_with_its_children(tmp_path: Path, host: LocalProcessHost) -> None:
    launch = launch_of("forks")
    pid = left_by_a_killed_launcher(tmp_path / "marks", launch)

    async def story() -> None:
        process = only(host).adopt()
        assert (process.pid, process.alive, process.listens_on(launch.port)) == (pid, True, True)
        family = process_table.family_of(pid)
        assert len(family) == 2
        os.kill(pid, signal.SIGUSR1)
        await poll(lambda: f"heard {pid}" in process.tail())
        assert host.lines("m-1", 0).lines[-1] == f"heard {pid}"
        process.signal(StopSignal.TERM)
        end = await process.ended()
        assert (end.code, end.tail[-1]) == (None, f"heard {pid}")
        assert not process.alive
        await poll(lambda: all(process_table.row_of(each) is None for each in family))
        assert await process.ended() == end
        process.signal(StopSignal.KILL)

    run(story())
    assert list((tmp_path / "marks").iterdir()) == []


def test_an_adopted_process_that_ends_by_itself_takes_its_children_with_it(
    tmp_path: Path, host: LocalProcessHost
) -> None:
    pid = left_by_a_killed_launcher(tmp_path / "marks", launch_of("forks"))

    async def story() -> ProcessEnd:
        process = only(host).adopt()
        family = process_table.family_of(pid)
        os.kill(pid, signal.SIGKILL)
        end = await process.ended()
        await poll(lambda: all(process_table.row_of(each) is None for each in family))
        return end

    assert run(story()).code is None


def test_one_that_ended_before_it_was_adopted_ends_at_once(tmp_path: Path, host: LocalProcessHost) -> None:
    pid = left_by_a_killed_launcher(tmp_path / "marks", launch_of())

    async def story() -> ProcessEnd:
        orphan = only(host)
        os.kill(pid, signal.SIGKILL)
        await poll(lambda: process_table.row_of(pid) is None)
        return await orphan.adopt().ended()

    assert run(story()).code is None


def test_an_adopted_process_whose_output_is_lost_is_kept_unheard(
    tmp_path: Path, host: LocalProcessHost, caplog: pytest.LogCaptureFixture
) -> None:
    pid = left_by_a_killed_launcher(tmp_path / "marks", launch_of())
    for path in (tmp_path / "marks").glob("*.out"):
        path.unlink()

    async def story() -> None:
        process = only(host).adopt()
        assert process.pid == pid
        process.signal(StopSignal.KILL)
        await process.ended()

    run(story())
    assert "orphan_unread" in [record.message for record in caplog.records]


def test_what_was_not_adopted_is_ended(tmp_path: Path, host: LocalProcessHost) -> None:
    pid = left_by_a_killed_launcher(tmp_path / "marks", launch_of("forks"))
    family = process_table.family_of(pid)
    host.left_behind()
    host.end_left_behind(grace_s=5.0)
    assert all(process_table.row_of(each) is None for each in family)
    host.end_left_behind(grace_s=5.0)


def test_a_process_whose_mark_cannot_be_written_ends_with_its_launcher(tmp_path: Path) -> None:
    launch = replace(launch_of(), name="m" * MARK_BYTES_MAX)
    pid = left_by_a_killed_launcher(tmp_path / "marks", launch)
    while process_table.row_of(pid) is not None:
        pass
    assert list((tmp_path / "marks").iterdir()) == []


def test_a_process_that_nobody_could_hear_on_ends_with_its_launcher(tmp_path: Path) -> None:
    (tmp_path / "marks").touch()
    pid = left_by_a_killed_launcher(tmp_path / "marks", launch_of())
    while process_table.row_of(pid) is not None:
        pass
