"""Child processes."""

import os
import sys
from pathlib import Path

import pytest

from luftpause.testkit.bench.over_http.children import Child, free_port, wait_until


def test_a_child_is_heard_and_ended(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", "print('up', flush=True); input()"], log=tmp_path / "log", lines=True)
    assert child.read_line(20) == "up"
    assert child.running
    os.kill(child.pid, 0)
    child.stop()
    assert not child.running


def test_what_a_child_complained_of_is_kept(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", "raise SystemExit('no way')"], log=tmp_path / "log")
    wait_until(lambda: not child.running, timeout_s=20, what="its end")
    assert "no way" in child.tail()
    child.stop()


def test_nobody_waits_for_ever() -> None:
    with pytest.raises(TimeoutError, match="the moon was not ready"):
        wait_until(lambda: False, timeout_s=0.01, what="the moon")
    assert 0 < free_port() < 65536
