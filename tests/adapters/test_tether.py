"""A tethered program: itself in all but its end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from luftpause.adapters.tether import CANNOT_RUN, tethered

WAIT_S = 20.0
LAUNCHER = """
import subprocess, sys
from luftpause.adapters.tether import tethered
child = subprocess.Popen(tethered((sys.executable, "-c", "import time; time.sleep(600)")))
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux is asked")
def test_it_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", LAUNCHER], stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        child = int(launcher.stdout.readline())
        deadline = time.monotonic() + WAIT_S
        while b"sleep(600)" not in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0tether\0")[-1]:
            assert time.monotonic() < deadline
        launcher.send_signal(signal.SIGKILL)
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline, "it outlived its parent"


def test_it_gives_the_program_its_arguments_and_returns_its_status() -> None:
    argv = tethered((sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "a b", "$(id)"))
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (ended.returncode, ended.stdout) == (7, "['a b', '$(id)']\n")


def tether(parent: int) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "luftpause.adapters.tether", str(parent), "/no/such/program"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S, check=False)


def test_a_program_that_cannot_be_run_is_named() -> None:
    ended = tether(os.getpid())
    assert ended.returncode == CANNOT_RUN
    assert "/no/such/program" in ended.stderr


def test_it_does_not_begin_when_its_parent_is_gone() -> None:
    assert tether(os.getppid()).returncode == 0
