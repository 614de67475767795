"""Fragments in files: owner, permissions, and what is too long."""

import os
import stat
from pathlib import Path

import pytest

from luftpause.cli.connecting import writing
from luftpause.cli.connecting.steps import Format, Fragment
from luftpause.cli.connecting.writing import Files
from luftpause.cli.failures import CommandFailedError


def fragment(path: Path) -> Fragment:
    return Fragment(path=str(path), format=Format.JSON, content={"a": 1})


def test_a_file_keeps_its_owner_and_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    Files().put_in(fragment(path))
    seen, copy = path.stat(), (tmp_path / "settings.json.bak").stat()
    assert stat.S_IMODE(seen.st_mode) == stat.S_IMODE(copy.st_mode) == 0o640
    assert seen.st_uid == copy.st_uid == (12345 if os.geteuid() == 0 else os.geteuid())


def test_what_is_too_long_for_settings_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FILE_BYTES_MAX", 1 << 20)
    path = tmp_path / "settings.json"
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(CommandFailedError, match="longer than 1 MiB"):
        Files().put_in(fragment(path))
    assert os.listdir(tmp_path) == [path.name]
