"""Where results go."""

from dataclasses import replace
from pathlib import Path

import click
import pytest

from luftpause.cli.bench_output import Destination
from luftpause.testkit.bench.results import from_json
from luftpause.testkit.bench.samples import Curves
from testkit.bench.measured import result

RESULT = result(sglang_router_tuned=[1.0], turn_admission=[2.0])


def test_a_folder_is_made_and_gets_a_file_and_a_plot(tmp_path: Path) -> None:
    Destination.of(None, str(tmp_path / "deep" / "er")).keep(RESULT)
    assert sorted(file.name for file in (tmp_path / "deep" / "er").iterdir()) == ["w1-sim.json", "w1-sim.svg"]


def test_where_nothing_was_drawn_there_is_no_plot(tmp_path: Path) -> None:
    bare = replace(RESULT, arms=tuple(replace(arm, curves=Curves()) for arm in RESULT.arms))
    Destination.of(None, str(tmp_path)).keep(bare)
    assert [file.name for file in tmp_path.iterdir()] == ["w1-sim.json"]


def test_a_file_gets_the_result(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    destination = Destination.of(str(file), None)
    assert destination.is_given
    assert not destination.prints_json
    destination.keep(RESULT)
    assert from_json(file.read_bytes()).workload == "w1"


def test_a_line_through_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    destination = Destination.of("-", None)
    assert destination.prints_json
    destination.keep(RESULT)
    assert from_json(capsys.readouterr().out.encode()).workload == "w1"


def test_without_a_place_nothing_is_kept() -> None:
    destination = Destination.of(None, None)
    assert not destination.is_given
    destination.keep(RESULT)


def test_a_folder_that_cannot_be_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="cannot write"):
        Destination.of(None, "/dev/null/x")
