"""A worker as a program, with the test as its foreman."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from luftpause.adapters.crew.frames import Ask, Begin, Opened
from luftpause.assembly.crew import Order
from luftpause.assembly.doors import Access
from luftpause.cli.worker import worker_command
from luftpause.config.schema import Config, Dataplane, Scheduler
from stories.raw_wire import ask
from stories.set_ups import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="several workers on one port need Linux")
WAIT_S = 50


@dataclass
class Worker:
    """The program and our end of its channel."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    log: Path

    def hears(self, frame: Begin) -> None:
        payload = msgspec.msgpack.encode(frame)
        self.channel.sendall(len(payload).to_bytes(4, "big") + payload)

    def says(self) -> Opened | Ask:
        length = int.from_bytes(self.channel.recv(4, socket.MSG_WAITALL), "big")
        said: Opened | Ask = msgspec.msgpack.decode(self.channel.recv(length, socket.MSG_WAITALL), type=Opened | Ask)
        return said


@contextlib.contextmanager
def working(tmp_path: Path) -> Iterator[Worker]:
    ours, theirs = socket.socketpair()
    ours.settimeout(WAIT_S)
    log = tmp_path / "worker.log"
    with ours, theirs, log.open("wb") as output:
        process = subprocess.Popen(
            [*worker_command("info"), "7", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        theirs.close()
        try:
            yield Worker(process, ours, log)
        finally:
            process.kill()
            process.wait(WAIT_S)


def test_it_opens_the_door_it_is_told_of_and_ends_when_its_foreman_is_gone(tmp_path: Path) -> None:
    port = free_port()
    config = Config(dataplane=Dataplane(port=port, workers=2), scheduler=Scheduler(port=free_port()))
    with working(tmp_path) as worker:
        worker.hears(Begin(Order(config=config, access=Access(token="sesame")).to_bytes()))
        assert worker.says() == Opened()
        door = f"http://127.0.0.1:{port}"
        assert ask(door, start="GET /health HTTP/1.1").status == 200
        assert ask(door, start="GET /metrics HTTP/1.1").status == 401
        worker.channel.close()
        assert worker.process.wait(WAIT_S) == 0
        written = worker.log.read_text(encoding="utf-8")
    assert '"worker": 7' in written
    assert "once more to abort" not in written


def test_without_a_foreman_it_says_so(tmp_path: Path) -> None:
    ended = subprocess.run(
        [*worker_command("info"), "1", "99"], capture_output=True, text=True, timeout=WAIT_S, check=False, cwd=tmp_path
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
