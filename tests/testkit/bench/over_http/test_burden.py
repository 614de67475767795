"""How busy processors were."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from luftpause.testkit.bench.over_http.burden import Burden, busiest, processor_s
from luftpause.testkit.bench.over_http.children import Child, wait_until

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@LINUX
def test_a_process_that_computes_is_busy_and_one_that_waits_is_not(tmp_path: Path) -> None:
    works = Child([sys.executable, "-c", "while True: pass"], log=tmp_path / "works.log")
    waits = Child([sys.executable, "-c", "input()"], log=tmp_path / "waits.log")
    try:
        before = processor_s(works.pid)
        burden = Burden({"engine": (waits, works), "door": ()})
        wait_until(lambda: processor_s(works.pid) > before + 0.2, timeout_s=20, what="its work")
        cores = burden.cores()
    finally:
        works.stop()
        waits.stop()
    assert set(cores) == {"agents", "engine", "door"}
    assert cores["engine"] > 0
    assert cores["door"] == 0


def test_a_process_that_is_gone_takes_nothing() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert processor_s(gone.pid) == 0
    assert processor_s(os.getpid()) >= 0


def test_the_most_of_each_part_is_told() -> None:
    assert busiest([{"agents": 0.1, "engine": 0.5}, {"agents": 0.25, "door": 0.125}]) == (
        "agents 0.25, engine 0.50, door 0.12"
    )
    assert busiest([]) == ""
