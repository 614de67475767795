"""What the benchmark reads from the kernel."""

import os
import sys
from pathlib import Path

import pytest
from benchmarks.doorbench.processes import ProcessStat, cpu_s, descendants, parse_queues, resident_bytes

from luftpause.testkit.bench.over_http.children import Child, wait_until

STAT = (
    "4711 (up (x) y) S 42 4711 4711 0 -1 4194304 5921 99 0 0 150 25 7 3 20 0 9 0 5201 1040384 3120 "
    "18446744073709551615 1 1 0 0 0 0 0 16781312 134235650 0 0 0 17 1 0 0 0 0 0"
)
TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000007 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:9C40 01 00000400:00000010 01:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100007F:9C40 0100007F:1F90 01 00000000:00000100 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
   3: 0100007F:2382 0100007F:9C41 01 0000FFFF:0000FFFF 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_stat_line_is_read_past_a_name_with_spaces_and_parentheses() -> None:
    assert ProcessStat.parse(STAT) == ProcessStat(pid=4711, parent=42, own_ticks=175, reaped_ticks=10)


@pytest.mark.parametrize("text", ["", "4711", "4711 (x) S 1 2", "no stat line at all"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a stat line"):
        ProcessStat.parse(text)


def test_descendants_are_found_whatever_the_order_of_the_table() -> None:
    parents = {30: 20, 10: 1, 20: 10, 21: 10, 99: 1}
    stats = [ProcessStat(pid=pid, parent=parent, own_ticks=1, reaped_ticks=0) for pid, parent in parents.items()]
    assert [stat.pid for stat in descendants(stats, 10)] == [10, 20, 21, 30]
    assert descendants(stats, 1234) == []


def test_queues_count_both_directions_of_the_sockets_that_touch_a_port_and_no_listener() -> None:
    assert parse_queues(TABLE, frozenset({8080})) == 0x400 + 0x10 + 0x100
    assert parse_queues(TABLE, frozenset({9090})) == 2 * 0xFFFF
    assert parse_queues(TABLE, frozenset({1})) == 0


@LINUX
def test_cpu_and_memory_of_a_living_process_are_told_and_of_a_dead_one_are_not() -> None:
    seconds, resident = cpu_s(os.getpid()), resident_bytes(os.getpid())
    assert seconds is not None
    assert seconds > 0
    assert resident is not None
    assert resident > 1_000_000
    assert cpu_s(2**22 + 1) is None
    assert resident_bytes(2**22 + 1) is None


def test_a_child_speaks_line_by_line_even_when_it_writes_several_at_once(tmp_path: Path) -> None:
    program = "import sys; print('one\\ntwo', flush=True); print(sys.stdin.readline().strip()[::-1], flush=True)"
    child = Child([sys.executable, "-c", program], log=tmp_path / "log", lines=True)
    try:
        assert child.read_line(20) == "one"
        assert child.read_line(20) == "two"
        child.say("olleh")
        assert child.read_line(20) == "hello"
        with pytest.raises(EOFError, match="ended"):
            child.read_line(20)
    finally:
        child.stop()
    assert not child.running


def test_a_silent_child_is_reported_with_what_it_logged(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", "import sys; sys.stdin.read()"], log=tmp_path / "log", lines=True)
    try:
        with pytest.raises(TimeoutError, match="said nothing"):
            child.read_line(0.01)
    finally:
        child.stop()


def test_waiting_names_what_never_became_ready() -> None:
    with pytest.raises(TimeoutError, match="the moon"):
        wait_until(lambda: False, timeout_s=0.01, what="the moon")
