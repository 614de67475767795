"""The ready file."""

import json
import os
from pathlib import Path

import pytest

from luftpause.cli.ready import write_ready_file


def test_the_file_names_each_service_and_the_process(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("old and much longer than what comes now" * 9, encoding="utf-8")
    write_ready_file(path, {"dataplane": "http://127.0.0.1:8080"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"dataplane": "http://127.0.0.1:8080", "pid": os.getpid()}
    assert [entry.name for entry in tmp_path.iterdir()] == ["ready.json"]


def test_the_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ready.json"
    seen: list[bool] = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append(path.exists())
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    write_ready_file(path, {})
    assert seen == [False]
    assert path.exists()


def test_a_folder_that_is_not_there_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_ready_file(tmp_path / "absent/ready.json", {})
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_ready_file(tmp_path / "taken", {})
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]
