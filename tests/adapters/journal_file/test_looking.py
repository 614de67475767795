"""A look from outside tells what the owner would find, and leaves everything as it is."""

from pathlib import Path

import pytest

from adapters.journal_file.journal_world import R, finished, spawned, turn, write
from luftpause.adapters import process_table
from luftpause.adapters.journal_file import looking
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.adapters.journal_file.looking import look_at


def test_what_is_sound_and_what_is_torn_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, spawned(), turn(), finished())
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"v":2,"se')
    look = look_at(tmp_path)
    assert look.found is not None
    assert (look.size, look.torn, look.holder) == (len(whole) + 10, 10, None)
    assert list(look.found.runs) == [R]
    assert path.read_bytes() == whole + b'{"v":2,"se'


def test_an_empty_folder_and_none_at_all_are_no_errors(tmp_path: Path) -> None:
    assert look_at(tmp_path).size is None
    assert look_at(tmp_path / "absent").size is None


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, spawned())
    monkeypatch.setattr(looking, "LOOKED_AT_MAX", 10)
    look = look_at(tmp_path)
    assert (look.size, look.found) == (path.stat().st_size, None)


@pytest.mark.skipif(not process_table.is_known(), reason="only Linux tells who has a file open")
def test_the_holder_is_seen_and_one_that_let_go_is_not(tmp_path: Path) -> None:
    held = DiskFolder(tmp_path).lock()
    holder = look_at(tmp_path).holder
    held.close()
    assert holder is not None
    assert look_at(tmp_path).holder is None
