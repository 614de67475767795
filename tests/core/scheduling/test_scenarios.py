"""The golden scenarios happen as they are written down; `LUFTPAUSE_REWRITE=1` writes them anew, for you to compare."""

import os
from pathlib import Path

import pytest

from core.scheduling.scenarios import replayed

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("file", SCENARIOS, ids=[file.stem for file in SCENARIOS])
def test_a_scenario_happens_as_it_is_written_down(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    happened = replayed(text)
    if os.environ.get("LUFTPAUSE_REWRITE"):
        file.write_text(happened, encoding="utf-8")
    else:
        assert happened == text


def test_a_changed_outcome_is_noticed() -> None:
    text = SCENARIOS[0].read_text(encoding="utf-8")
    assert replayed(text.replace(" goes to a", " goes to z")) == text
    assert replayed("replica a\nprobe a\narrive t\n") != "replica a\nprobe a\narrive t\n"
