"""The ready file."""

import json
import os
from pathlib import Path

import pytest

from luftpause.cli.failures import CommandFailedError
from luftpause.cli.ready import ready_file


def test_the_file_names_each_service_and_the_process_and_is_gone_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    with ready_file(path) as announce:
        assert not path.exists()
        announce({"dataplane": "http://127.0.0.1:8080"})
        written = json.loads(path.read_text(encoding="utf-8"))
        assert written == {"dataplane": "http://127.0.0.1:8080", "pid": os.getpid()}
        assert [entry.name for entry in tmp_path.iterdir()] == ["ready.json"]
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_an_earlier_process_is_gone_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("old", encoding="utf-8")
    with ready_file(path):
        assert not path.exists()


def test_the_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ready.json"
    seen: list[bool] = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append(path.exists())
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    with ready_file(path) as announce:
        announce({})
        assert seen == [False]
        assert path.exists()


def test_a_file_that_cannot_be_written_is_named_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    for path in (tmp_path / "absent/ready.json", tmp_path / "taken"):
        with pytest.raises(CommandFailedError, match=str(path)), ready_file(path):
            pytest.fail("it began")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ready_file(None) as announce:
        announce({"dataplane": "http://127.0.0.1:8080"})
    assert list(tmp_path.iterdir()) == []
