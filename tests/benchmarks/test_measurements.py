"""The document, from what is stored."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.measurements import STORED, document, pages

from benchmarks import measurements
from luftpause.testkit.bench.results import file_name, to_json
from testkit.bench.measured import result


def test_each_stored_benchmark_has_its_section(tmp_path: Path) -> None:
    assert "##" not in document(tmp_path).removeprefix("# Measurements")
    (tmp_path / "bench").mkdir()
    shutil.copy(STORED / "bench" / "w1-sim.json", tmp_path / "bench")
    shutil.copy(STORED / "door.json", tmp_path)
    text = document(tmp_path)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## At a glance",
        "## What is not reached",
        "## Scheduling",
        "## The LLM door",
    ]
    assert "../benchmarks/results/bench/w1-sim.svg" in text
    first, missed = text.split("## Scheduling")[0].split("## What is not reached")
    assert "(pictures/flood.svg)" in first
    assert "- added to the first byte, p50: luftpause " in first
    assert "- processor time of a one-chunk streamed request: luftpause " in first
    assert "`working-set` meets 2 of its 2 claims" in missed
    assert "goal: ≤ 2× nginx: **missed by" in missed
    assert "commit" not in missed


def test_a_stranger_sees_on_the_first_screen_what_is_won_against_whom_and_at_what_price() -> None:
    first = document(STORED).split("## What is not reached")[0]
    assert len(first.splitlines()) <= 55
    for said in ("`w1` Flood", "HTTP, real routers", "llama.cpp", "smg", "added to the first byte"):
        assert said in first


def test_a_result_without_a_commit_is_named(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    found = replace(result(turn_admission=[3.0]), commit="unknown")
    (tmp_path / "bench" / file_name(found)).write_bytes(to_json(found))
    assert "Measured without a note of the commit: w1 (sim)." in document(tmp_path)


def test_all_pages_are_written_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench").mkdir()
    shutil.copy(STORED / "bench" / "w1-sim.json", tmp_path / "bench")
    for name, value in (("ROOT", ""), ("STORED", ""), ("DOCUMENT", "MEASUREMENTS.md"), ("PICTURE", "flood.svg")):
        monkeypatch.setattr(measurements, name, tmp_path / value)
    assert measurements.main() == 0
    written = {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.suffix in (".md", ".svg")}
    assert written == pages(tmp_path)
    assert {path.name for path in written} == {"MEASUREMENTS.md", "flood.svg", "w1-sim.svg"}


def test_what_is_committed_is_what_is_stored() -> None:
    for path, text in pages(STORED).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: python -m benchmarks.measurements"
