"""The runtime's section of the measurements, from invented figures, and that its parts measure what it names."""

import gc
from pathlib import Path

import pytest
from benchmarks.runtimebench.parts import PARTS, measure
from benchmarks.runtimebench.quiet import Effort
from benchmarks.runtimebench.report import LIMITS, TITLES, section
from benchmarks.runtimebench.results import RuntimeResults, load, store

from luftpause.testkit.bench.machine import Machine

MACHINE = Machine(system="Linux", processor="a processor", cores=2, memory_gib=4.0, python="3.11", load_before=0.1)
SMALL = Effort(runs=300, agents=4, seconds=0.05)


def results(**parts: dict[str, float]) -> RuntimeResults:
    return RuntimeResults(when="2026-01-01T00:00:00+00:00", commit="abc", machine=MACHINE, parts=parts)


def test_each_figure_has_words_its_unit_and_the_verdict_on_its_limit() -> None:
    page = section(
        results(
            replay={"start_s": 2.5, "status_of_one_us": 11.0},
            live={"spawn_p99_ms": 250.0, "cpu_ms_per_run": 4.8},
            beside={"chunk_late_p99_ms_alone": 1.0, "chunk_late_p99_ms_with_spawns": 6.5},
        )
    )
    assert "| start, s " in page
    assert "| ≤ 5: **met** " in page
    assert "status of one, µs" in page
    assert "| ≤ 100: **missed by 2.50×** |" in page
    assert "added to chunk p99, ms" in page
    assert "| 5.5 " in page


def test_what_is_stored_is_what_is_read(tmp_path: Path) -> None:
    stored = results(replay={"start_s": 2.5})
    store(stored, tmp_path / "results" / "runtime.json")
    assert load(tmp_path / "results" / "runtime.json") == stored


def test_every_part_has_a_title_and_every_limit_a_part() -> None:
    assert list(TITLES) == list(PARTS)
    assert {part for part, _ in LIMITS} <= set(PARTS)


@pytest.mark.parametrize("part", ["journal", "replay"])
def test_a_part_measures_the_figures_that_have_limits(tmp_path: Path, part: str) -> None:
    usual = gc.get_threshold()
    try:
        figures = measure(part, SMALL, tmp_path)
    finally:
        gc.set_threshold(*usual)
    assert {name for limited, name in LIMITS if limited == part} <= set(figures)
    assert all(value >= 0 for value in figures.values())
    assert not list(tmp_path.iterdir()), "nothing is left on the disk"
