import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("crashing_runtime.py")
DONE = "look done / write done / write done"
APPENDS = 12
"""More than an uninterrupted run needs, so that the last points lie behind its end."""

USUAL = ("after:1", "before:3", "after:4", "before:5", "after:7", "tool:1", "tool:2", "tool:3")
EVERY = (
    *(f"{side}:{number}" for number in range(1, APPENDS + 1) for side in ("before", "after")),
    *(f"tool:{number}" for number in (1, 2, 3)),
)
POINTS = [where if where in USUAL else pytest.param(where, marks=pytest.mark.nightly) for where in EVERY]


def run_once(folder: Path, where: str) -> tuple[bool, dict[str, object]]:
    """Whether the process was killed, and what it printed if not."""
    command = [sys.executable, str(PROGRAM), str(folder), where]
    ended = subprocess.run(command, capture_output=True, timeout=40, check=False, env=dict(os.environ))
    if ended.returncode == -9:
        return True, {}
    assert ended.returncode == 0, ended.stderr.decode()
    decoded: dict[str, object] = json.loads(ended.stdout)
    return False, decoded


def effects(folder: Path) -> list[str]:
    path = folder / "log"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.mark.parametrize("where", POINTS)
def test_a_run_outlives_kill_9_anywhere_and_no_unsafe_call_is_made_twice(tmp_path: Path, where: str) -> None:
    killed, _ = run_once(tmp_path, where)
    again, seen = run_once(tmp_path, "never")
    assert not again
    assert (seen["runs"], seen["status"]) == (1, "Finished")
    unsafe = [line for line in effects(tmp_path) if line.startswith("write")]
    assert len(set(unsafe)) == len(unsafe), "an unsafe call was made twice"
    told = str(seen["result"]).split(" / ")
    assert told[0] == "look done"
    for answer in told[1:]:
        assert answer == "write done" or "Whether it took effect is unknown" in answer
    if not killed:
        assert seen["result"] == DONE


def test_a_kill_between_effect_and_record_is_told_as_unknown(tmp_path: Path) -> None:
    """The third call is the second reply's only one: its effect is there, its result is not."""
    assert run_once(tmp_path, "tool:3")[0]
    _, seen = run_once(tmp_path, "never")
    assert "Whether it took effect is unknown" in str(seen["result"])
    assert len([line for line in effects(tmp_path) if line.startswith("write")]) == 2


def test_a_run_that_is_killed_at_every_restart_still_ends(tmp_path: Path) -> None:
    killed = True
    for _ in range(20):
        killed, seen = run_once(tmp_path, "after:2")
        if not killed:
            break
    assert not killed
    assert seen["status"] == "Finished"


def test_a_finished_run_answers_after_kill_9(tmp_path: Path) -> None:
    killed, first = run_once(tmp_path, f"before:{APPENDS + 5}")
    assert (killed, first["result"]) == (False, DONE)
    size = (tmp_path / "runs.jsonl").stat().st_size
    assert run_once(tmp_path, "never") == (False, first)
    assert (tmp_path / "runs.jsonl").stat().st_size == size
