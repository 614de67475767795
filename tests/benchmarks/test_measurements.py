"""The document, from what is stored."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.measurements import STORED, document, flood

from benchmarks import measurements
from luftpause.testkit.bench.results import file_name, to_json
from testkit.bench.measured import result


def test_each_stored_benchmark_has_its_section(tmp_path: Path) -> None:
    assert "##" not in document(tmp_path).removeprefix("# Measurements")
    (tmp_path / "bench").mkdir()
    found = result(sglang_router_tuned=[1.0], turn_admission=[3.0])
    (tmp_path / "bench" / file_name(found)).write_bytes(to_json(found))
    shutil.copy(STORED / "door.json", tmp_path)
    text = document(tmp_path)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## What is not reached",
        "## Scheduling",
        "## The LLM door",
    ]
    assert "../benchmarks/results/bench/w1-sim.svg" in text
    first = text.split("## Scheduling")[0]
    assert "`turn-admission` meets 1 of its 1 claims" in first
    assert "goal: ≤ 2× nginx: **missed by" in first
    assert "commit" not in first


def test_a_result_without_a_commit_is_named(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    found = replace(result(turn_admission=[3.0]), commit="unknown")
    (tmp_path / "bench" / file_name(found)).write_bytes(to_json(found))
    assert "Measured without a note of the commit: w1 (sim)." in document(tmp_path)


def test_both_are_written_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "ROOT", tmp_path)
    monkeypatch.setattr(measurements, "DOCUMENT", tmp_path / "MEASUREMENTS.md")
    monkeypatch.setattr(measurements, "PICTURE", tmp_path / "flood.svg")
    assert measurements.main() == 0
    assert (tmp_path / "MEASUREMENTS.md").read_text(encoding="utf-8") == document(STORED)
    assert (tmp_path / "flood.svg").read_text(encoding="utf-8") == flood(STORED)


def test_what_is_committed_is_what_is_stored() -> None:
    assert measurements.DOCUMENT.read_text(encoding="utf-8") == document(STORED)
    assert measurements.PICTURE.read_text(encoding="utf-8") == flood(STORED)
