"""What a run of the swap benchmark is stored as, and how its figures read."""

import re
from pathlib import Path

import pytest
from benchmarks.swapbench.report import added_ms, section
from benchmarks.swapbench.results import SwapResults, load, store

from luftpause.testkit.bench.machine import Machine

MACHINE = Machine(system="Linux 6", processor="Model T", cores=2, memory_gib=24.0, python="3.11", load_before=0.5)


def results(*, cold: list[float], warm: list[float]) -> SwapResults:
    return SwapResults(
        when="2026-11-30T00:00:00+00:00",
        commit="abc",
        machine=MACHINE,
        load_after=1.5,
        phases={"cold": 2500.4, "unknown name": 2.1},
        cold={"by hand": [1000.0, 2000.0, 1000.0], "on demand": cold},
        quick={"by hand": [50.0], "on demand": [90.0]},
        warm={"static": [10.0, 10.0], "on demand": warm},
        returning={"parked": [5000.0], "computed again": [40000.0]},
    )


def test_what_the_launcher_adds_is_taken_within_each_round() -> None:
    run = results(cold=[1100.0, 2100.0, 1200.0], warm=[10.5, 10.7])
    assert added_ms(run.cold, "by hand") == pytest.approx(100.0)
    assert added_ms(run.warm, "static") == pytest.approx(0.6)


def test_the_section_says_what_was_met_and_how_busy_the_machine_was() -> None:
    text = section(results(cold=[1100.0, 2100.0, 1200.0], warm=[12.0, 12.0]))
    assert "load average 0.5 before the run, 1.5 after it" in text
    assert "2,500" in text
    assert re.search(r"1,200.00 +\| 1,000.00 +\| 1.20× +\| \+100.00, ≤ 150: \*\*met\*\*", text)
    assert "+2.00, ≤ 1: **missed by 2.00×**" in text
    assert "the load included: 8.0×" in text


def test_what_is_stored_is_what_is_read(tmp_path: Path) -> None:
    stored = results(cold=[1.0, 2.0, 3.0], warm=[1.0, 2.0])
    store(stored, tmp_path / "results" / "swap.json")
    assert load(tmp_path / "results" / "swap.json") == stored
